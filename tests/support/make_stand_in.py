#!/usr/bin/env python3
"""Writes a stand-in of the released DeepSeek-V4.1-Flash checkpoint: the true headers of 48 shards with 96,085 tensors, an
index and config.json; the 510,286,023,000 payload bytes are holes, so the disk holds some 15 MB.

    python3 tests/support/make_stand_in.py FOLDER            the released shape
    python3 tests/support/make_stand_in.py FOLDER --tiny     the same kinds of tensors in a few MB, 3 shards

The inventory is written down here once more, independently of src/model/deepseek_v41/inventory.cc: the two check each
other. Needs Python 3.9 and nothing else."""
import argparse
import json
import os
import struct

RELEASED = dict(
    model_type="deepseek_v41_text", vocab_size=129280, hidden_size=5120, num_hidden_layers=40, num_attention_heads=64,
    num_key_value_heads=1, head_dim=512, qk_rope_head_dim=64, q_lora_rank=1280, o_groups=8, o_lora_rank=1024,
    moe_intermediate_size=2304, n_routed_experts=384, n_shared_experts=1, num_experts_per_tok=6,
    scoring_func="sqrtsoftplus", topk_method="noaux_tc", norm_topk_prob=True, routed_scaling_factor=1.5,
    swiglu_limit=10.0, hidden_act="silu", rms_norm_eps=1e-20, attention_bias=False, attention_dropout=0.0,
    initializer_range=0.02, use_cache=True, tie_word_embeddings=False, max_position_embeddings=1048576,
    rope_theta=10000, compress_rope_theta=160000,
    rope_scaling=dict(rope_type="yarn", factor=16, beta_fast=32, beta_slow=1, original_max_position_embeddings=65536),
    sliding_window=128, compress_ratios=[0, 0] + [2] * 18 + [1] * 20 + [0, 0, 0], kv_source_layer_ids=[2, 8, 14, 20],
    index_source_layer_ids=[2, 8, 14, 20, 24, 28, 32, 36], index_n_heads=32, index_head_dim=128, index_topk=512,
    candidate_source_layer_id=20, candidate_topk_blocks=2048, candidate_block_size=8, hc_mult=4, hc_sinkhorn_iters=20,
    hc_eps=1e-6, engram_layer_ids=[1, 14], engram_num_embeddings=[384006168, 384016682], engram_vocab_size=16000000,
    engram_max_ngram_size=4, engram_n_heads=8, engram_head_dim=256, engram_pad_token_id=2,
    engram_compressed_vocab_size=99092, num_nextn_predict_layers=3, dspark_block_size=5, dspark_noise_token_id=128799,
    dspark_target_layer_ids=[37, 38, 39], dspark_markov_rank=256, dspark_n_routed_experts=128,
    dspark_num_experts_per_tok=3)
RELEASED_VISION = dict(
    model_type="deepseek_v41_vision", hidden_size=1024, num_hidden_layers=32, num_attention_heads=16,
    intermediate_size=2816, patch_size=14, downsample_ratio=3, rope_theta=10000, max_image_tokens=1024,
    min_pixels=295936, max_wh_ratio=None)
TINY = dict(
    RELEASED, vocab_size=320, hidden_size=128, num_hidden_layers=10, num_attention_heads=4, head_dim=64,
    qk_rope_head_dim=16, q_lora_rank=64, o_groups=2, o_lora_rank=32, moe_intermediate_size=64, n_routed_experts=8,
    num_experts_per_tok=2, sliding_window=16, compress_ratios=[0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0],
    kv_source_layer_ids=[2, 4, 6], index_source_layer_ids=[2, 4, 6, 8], index_n_heads=16, index_head_dim=32,
    index_topk=16, candidate_source_layer_id=6, candidate_topk_blocks=3, engram_layer_ids=[1, 4],
    engram_vocab_size=64, engram_n_heads=2, engram_head_dim=32, engram_num_embeddings=[462, 630],
    engram_compressed_vocab_size=300, num_nextn_predict_layers=2, dspark_noise_token_id=319,
    dspark_target_layer_ids=[7, 8, 9], dspark_markov_rank=32, dspark_n_routed_experts=4, dspark_num_experts_per_tok=2,
    max_position_embeddings=4096)
TINY_VISION = dict(RELEASED_VISION, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=96,
                   patch_size=4, downsample_ratio=2)
SIZE = dict(F8_E4M3=1, F8_E8M0=1, I8=1, BF16=2, F32=4)


def ceil32(n):
    return (n + 31) // 32


def block(c, prefix, experts):
    """The tensors that a backbone layer and a draft stage share: (name, dtype, shape)."""
    d, s, f, qr = c["hidden_size"], c["hc_mult"], c["moe_intermediate_size"], c["q_lora_rank"]
    h, hd, g, ro = c["num_attention_heads"], c["head_dim"], c["o_groups"], c["o_lora_rank"]
    mix = (2 + s) * s
    for name in ("attn_norm", "ffn_norm"):
        yield f"{prefix}{name}.weight", "BF16", [d]
    for site in ("attn", "ffn"):
        yield f"{prefix}hc_{site}_fn", "F32", [mix, s * d]
        yield f"{prefix}hc_{site}_base", "F32", [mix]
        yield f"{prefix}hc_{site}_scale", "F32", [3]
    yield f"{prefix}attn.attn_sink", "F32", [h]
    yield f"{prefix}attn.q_norm.weight", "BF16", [qr]
    yield f"{prefix}attn.kv_norm.weight", "BF16", [hd]
    for name, out, inp in (("wq_a", qr, d), ("wq_b", h * hd, qr), ("wkv", hd, d), ("wo_a", g * ro, h * hd // g), ("wo_b", d, g * ro)):
        yield from fp8(f"{prefix}attn.{name}", out, inp)
    yield f"{prefix}ffn.gate.weight", "BF16", [experts, d]
    yield f"{prefix}ffn.gate.bias", "F32", [experts]
    yield f"{prefix}ffn.gate.bias_vl", "F32", [experts]
    for name, out, inp in (("w1", f, d), ("w2", d, f), ("w3", f, d)):
        yield from fp8(f"{prefix}ffn.shared_experts.{name}", out, inp)
        for e in range(experts):
            yield f"{prefix}ffn.experts.{e}.{name}.weight", "I8", [out, inp // 2]
            yield f"{prefix}ffn.experts.{e}.{name}.scale", "F8_E8M0", [out, inp // 32]


def fp8(stem, out, inp):
    yield f"{stem}.weight", "F8_E4M3", [out, inp]
    yield f"{stem}.scale", "F8_E8M0", [ceil32(out), ceil32(inp)]


def layer(c, i):
    p = f"layers.{i}."
    d, hd, idx = c["hidden_size"], c["head_dim"], c["index_head_dim"]
    yield from block(c, p, c["n_routed_experts"])
    if i in c["kv_source_layer_ids"]:
        yield f"{p}attn.compressor.wkv.weight", "BF16", [hd, d]
        if c["compress_ratios"][i] > 1:
            yield f"{p}attn.compressor.wgate.weight", "BF16", [hd, d]
        yield f"{p}attn.compressor.norm.weight", "BF16", [hd]
        yield f"{p}attn.indexer.wk.weight", "BF16", [idx, hd]
        yield f"{p}attn.indexer.k_norm.weight", "BF16", [idx]
    if i in c["index_source_layer_ids"]:
        yield from fp8(f"{p}attn.indexer.wq_b", c["index_n_heads"] * idx, c["q_lora_rank"])
        yield f"{p}attn.indexer.weights_proj.weight", "BF16", [c["index_n_heads"], d]
    if i in c["engram_layer_ids"]:
        columns = (c["engram_max_ngram_size"] - 1) * c["engram_n_heads"] * c["engram_head_dim"]
        yield from fp8(f"{p}engram.wkv", (c["hc_mult"] + 1) * d, columns)
        yield f"{p}engram.q_weight", "BF16", [c["hc_mult"], d]
        yield f"{p}engram.k_weight", "BF16", [c["hc_mult"], d]


def table(c, slot):
    rows, dim = c["engram_num_embeddings"][slot], c["engram_head_dim"]
    p = f"layers.{c['engram_layer_ids'][slot]}.engram.embed."
    yield p + "weight", "F8_E4M3", [rows, dim]
    yield p + "scale", "F8_E8M0", [rows, dim // 32]


def ends(c):
    d, v = c["hidden_size"], c["vocab_size"]
    yield "embed.weight", "BF16", [v, d]
    yield "head.weight", "BF16", [v, d]
    yield "norm.weight", "BF16", [d]


def draft(c):
    d, v, r, n = c["hidden_size"], c["vocab_size"], c["dspark_markov_rank"], c["num_nextn_predict_layers"]
    for m in range(n):
        yield from block(c, f"mtp.{m}.", c["dspark_n_routed_experts"])
    yield from fp8("mtp.0.main_proj", d, len(c["dspark_target_layer_ids"]) * d)
    yield "mtp.0.main_norm.weight", "BF16", [d]
    yield f"mtp.{n - 1}.norm.weight", "BF16", [d]
    yield f"mtp.{n - 1}.markov_head.embed.weight", "BF16", [v, r]
    yield f"mtp.{n - 1}.markov_head.head.weight", "BF16", [v, r]
    yield f"mtp.{n - 1}.confidence_head.proj.weight", "BF16", [1, d + r]


def vision(c, v):
    d, w, f = c["hidden_size"], v["hidden_size"], v["intermediate_size"]
    for name in ("image_start", "image_end", "image_newline"):
        yield name, "BF16", [d]
    yield "vision.patch_embed.proj.weight", "BF16", [w, 3 * v["patch_size"] ** 2]
    yield "vision.patch_embed.proj.bias", "BF16", [w]
    for b in range(v["num_hidden_layers"]):
        p = f"vision.blocks.{b}."
        for name, shape in (("norm1.weight", [w]), ("norm2.weight", [w]), ("attn.wqkv.weight", [3 * w, w]), ("attn.wqkv.bias", [3 * w]),
                            ("attn.wo.weight", [w, w]), ("attn.wo.bias", [w]), ("mlp.w1.weight", [2 * f, w]), ("mlp.w2.weight", [w, f])):
            yield p + name, "BF16", shape
    yield "vision.norm.weight", "BF16", [w]
    yield "aligner.w1.weight", "BF16", [d, v["downsample_ratio"] ** 2 * w]
    yield "aligner.w1.bias", "BF16", [d]
    yield "aligner.w2.weight", "BF16", [d, d]
    yield "aligner.w2.bias", "BF16", [d]


def write_shard(path, tensors):
    """Header and a hole. Larger element types first, as the reference writer sorts, so that every tensor is aligned."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape in sorted(tensors, key=lambda t: (-SIZE[t[1]], t[0])):
        size = SIZE[dtype]
        for n in shape:
            size *= n
        header[name] = dict(dtype=dtype, shape=shape, data_offsets=[at, at + size])
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + at)
    return at


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    c, v = (TINY, TINY_VISION) if args.tiny else (RELEASED, RELEASED_VISION)
    tables = [list(table(c, slot)) for slot in range(len(c["engram_layer_ids"]))]
    layers = [list(layer(c, i)) for i in range(c["num_hidden_layers"])]
    others = [list(ends(c)), list(draft(c)), list(vision(c, v))]
    if args.tiny:
        shards = [sum(layers[:5], []), sum(layers[5:] + others, []), sum(tables, [])]
    else:   # 46 shards for the layers and the rest, two for the tables
        shards = layers + others + [[], [], []] + tables
        for i in range(3):
            shards[43 + i], shards[i] = shards[i][::2], shards[i][1::2]
    os.makedirs(args.folder, exist_ok=True)
    weight_map, total, count = {}, 0, 0
    for i, tensors in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        total += write_shard(os.path.join(args.folder, name), tensors)
        count += len(tensors)
        weight_map |= {t[0]: name for t in tensors}
    if not args.tiny:
        assert (count, total) == (96085, 510286023000), (count, total)
    with open(os.path.join(args.folder, "model.safetensors.index.json"), "w") as out:
        json.dump(dict(metadata=dict(total_size=total), weight_map=weight_map), out, indent=2, sort_keys=True)
    config = dict(architectures=["DeepseekV41ForCausalLM"], model_type="deepseek_v41", dtype="bfloat16",
                  transformers_version="5.6.0", bos_token_id=0, eos_token_id=1, pad_token_id=2,
                  image_token_id=318 if args.tiny else 129264,
                  quantization_config=dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[32, 32],
                                           scale_fmt="ue8m0", expert_dtype="fp4"),
                  text_config=c, vision_config=v)
    with open(os.path.join(args.folder, "config.json"), "w") as out:
        json.dump(config, out, indent=2)
    print(f"{args.folder}: {len(shards)} shards, {count} tensors, {total} payload bytes")


if __name__ == "__main__":
    main()
