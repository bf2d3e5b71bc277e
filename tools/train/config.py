"""The shape of Gannet-mini, spelled like a released DeepSeek-V4.1 config.json, and what it weighs in the released formats."""
import copy
import json

BASE = dict(
    model_type="deepseek_v41_text", vocab_size=8192, hidden_size=160, num_hidden_layers=10, num_attention_heads=4,
    num_key_value_heads=1, head_dim=64, qk_rope_head_dim=32, q_lora_rank=96, o_groups=2, o_lora_rank=64,
    moe_intermediate_size=96, n_routed_experts=16, n_shared_experts=1, num_experts_per_tok=4,
    scoring_func="sqrtsoftplus", topk_method="noaux_tc", norm_topk_prob=True, routed_scaling_factor=1.5,
    swiglu_limit=10.0, hidden_act="silu", rms_norm_eps=1e-20, attention_bias=False, attention_dropout=0.0,
    initializer_range=0.02, use_cache=True, tie_word_embeddings=False, max_position_embeddings=1024,
    rope_theta=10000.0, compress_rope_theta=160000.0,
    rope_scaling=dict(rope_type="yarn", factor=16, beta_fast=32, beta_slow=1, original_max_position_embeddings=65536),
    sliding_window=64, compress_ratios=[0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0], kv_source_layer_ids=[2, 4, 6],
    index_source_layer_ids=[2, 4, 6, 8], index_n_heads=8, index_head_dim=32, index_topk=64,
    candidate_source_layer_id=6, candidate_topk_blocks=24, candidate_block_size=8,
    hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-6,
    engram_layer_ids=[1, 4], engram_vocab_size=3200, engram_max_ngram_size=4, engram_n_heads=2, engram_head_dim=32,
    engram_pad_token_id=2, num_nextn_predict_layers=2, dspark_block_size=5, dspark_noise_token_id=None,
    dspark_target_layer_ids=[7, 8, 9], dspark_markov_rank=32, dspark_n_routed_experts=8,
    dspark_num_experts_per_tok=2)

TINY = dict(vocab_size=320, hidden_size=64, num_attention_heads=2, head_dim=32, qk_rope_head_dim=16, q_lora_rank=32,
            o_lora_rank=32, moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2, sliding_window=16,
            index_n_heads=4, index_topk=12, candidate_topk_blocks=3, candidate_block_size=8, engram_vocab_size=64,
            dspark_n_routed_experts=4, dspark_num_experts_per_tok=2, dspark_noise_token_id=319)


def text_config(**changes):
    return copy.deepcopy(BASE) | changes


def check(c):
    """The validity rules of the architecture; a config that breaks one is refused, never repaired."""
    ratio, kv, index = c["compress_ratios"], c["kv_source_layer_ids"], c["index_source_layer_ids"]
    for key in ("hidden_size", "head_dim", "q_lora_rank", "o_lora_rank", "moe_intermediate_size", "index_head_dim",
                "engram_head_dim"):
        assert c[key] % 32 == 0, f"{key} = {c[key]} is no multiple of the quantisation block 32"
    assert c["num_attention_heads"] % c["o_groups"] == 0
    assert set(kv) <= set(index) and c["candidate_source_layer_id"] in kv
    for l in range(c["num_hidden_layers"]):
        if ratio[l]:
            k, i = source(kv, l), source(index, l)
            assert k is not None and ratio[k] == ratio[l] and i >= k, f"layer {l} has no source of its ratio"
    if "engram_num_embeddings" in c:
        assert len(c["engram_num_embeddings"]) == len(c["engram_layer_ids"])


def source(ids, layer):
    """The nearest listed layer at or below `layer`."""
    return max((i for i in ids if i <= layer), default=None)


def wrap(c, **top):
    """config.json as released: nested, with the quantisation at the top level."""
    return dict(architectures=["DeepseekV41ForCausalLM"], model_type="deepseek_v41", dtype="bfloat16",
                transformers_version="5.6.0", bos_token_id=0, eos_token_id=1, pad_token_id=2, **top,
                quantization_config=dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[32, 32],
                                         scale_fmt="ue8m0", expert_dtype="fp4"),
                text_config=c, vision_config=None)


def load(path):
    return json.load(open(path))["text_config"]


UNSTACKED = {"embed", "head", "norm", "main_proj", "main_norm", "draft_norm", "markov_embed", "markov_head", "confidence"}

# Storage kinds: how a tensor is written. bytes per element, scales included.
BYTES = dict(f32=4.0, bf16=2.0, fp8=1 + 1 / 1024, row8=1 + 1 / 32, fp4=0.5 + 1 / 32)


def inventory(c):
    """Every parameter: name -> (storage kind, shape). Tensors that all blocks share in shape are stacked over blocks
    (backbone layers first, then draft stages), so that quantisers and the optimiser see few large tensors."""
    D, V, S, d, H = c["hidden_size"], c["vocab_size"], c["hc_mult"], c["head_dim"], c["num_attention_heads"]
    L, M, F, Rq = c["num_hidden_layers"], c["num_nextn_predict_layers"], c["moe_intermediate_size"], c["q_lora_rank"]
    G, Ro, HI, dI = c["o_groups"], c["o_lora_rank"], c["index_n_heads"], c["index_head_dim"]
    N, nkv, nidx, neng = L + M, len(c["kv_source_layer_ids"]), len(c["index_source_layer_ids"]), len(c["engram_layer_ids"])
    pooled = sum(c["compress_ratios"][l] > 1 for l in c["kv_source_layer_ids"])
    cols, R = (c["engram_max_ngram_size"] - 1) * c["engram_n_heads"], c["dspark_markov_rank"]
    mix = (2 + S) * S
    inv = {
        "embed": ("bf16", (V, D)), "head": ("bf16", (V, D)), "norm": ("bf16", (D,)),
        "attn_norm": ("bf16", (N, D)), "ffn_norm": ("bf16", (N, D)),
        "hc_attn_fn": ("f32", (N, mix, S * D)), "hc_attn_base": ("f32", (N, mix)), "hc_attn_scale": ("f32", (N, 3)),
        "hc_ffn_fn": ("f32", (N, mix, S * D)), "hc_ffn_base": ("f32", (N, mix)), "hc_ffn_scale": ("f32", (N, 3)),
        "attn_sink": ("f32", (N, H)), "wq_a": ("fp8", (N, Rq, D)), "q_norm": ("bf16", (N, Rq)),
        "wq_b": ("fp8", (N, H * d, Rq)), "wkv": ("fp8", (N, d, D)), "kv_norm": ("bf16", (N, d)),
        "wo_a": ("fp8", (N, G * Ro, H * d // G)), "wo_b": ("fp8", (N, D, G * Ro)),
        "shared_w1": ("fp8", (N, F, D)), "shared_w3": ("fp8", (N, F, D)), "shared_w2": ("fp8", (N, D, F)),
        "comp_wkv": ("bf16", (nkv, d, D)), "comp_wgate": ("bf16", (pooled, d, D)), "comp_norm": ("bf16", (nkv, d)),
        "idx_wk": ("bf16", (nkv, dI, d)), "idx_k_norm": ("bf16", (nkv, dI)),
        "idx_wq_b": ("fp8", (nidx, HI * dI, Rq)), "idx_weights": ("bf16", (nidx, HI, D)),
        "engram_wkv": ("fp8", (neng, (S + 1) * D, cols * c["engram_head_dim"])),
        "engram_q": ("bf16", (neng, S, D)), "engram_k": ("bf16", (neng, S, D)),
        "main_proj": ("fp8", (D, len(c["dspark_target_layer_ids"]) * D)), "main_norm": ("bf16", (D,)),
        "draft_norm": ("bf16", (D,)), "markov_embed": ("bf16", (V, R)), "markov_head": ("bf16", (V, R)),
        "confidence": ("bf16", (1, D + R))}
    for part, n, E in (("", L, c["n_routed_experts"]), ("draft_", M, c["dspark_n_routed_experts"])):
        inv |= {f"{part}gate": ("bf16", (n, E, D)), f"{part}gate_bias": ("f32", (n, E)),
                f"{part}w1": ("fp4", (n, E, F, D)), f"{part}w3": ("fp4", (n, E, F, D)), f"{part}w2": ("fp4", (n, E, D, F))}
    for i, rows in enumerate(c["engram_num_embeddings"]):
        inv[f"engram_table{i}"] = ("row8", (rows, c["engram_head_dim"]))
    return inv


def size(c):
    """(parameters, bytes) in the released formats."""
    n = b = 0
    for kind, shape in inventory(c).values():
        k = 1
        for s in shape:
            k *= s
        n, b = n + k, b + k * BYTES[kind]
    return n, b


if __name__ == "__main__":
    c = text_config(engram_num_embeddings=[6 * 3300] * 2)
    check(c)
    parts = {k: round(BYTES[q] * __import__("math").prod(s) / 1e6, 2) for k, (q, s) in inventory(c).items()}
    print({k: v for k, v in parts.items() if v > 0.05}, size(c))
