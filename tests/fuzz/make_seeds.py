#!/usr/bin/env python3
"""Writes the seed corpora of the file fuzzers into tests/fuzz/corpus/. Needs Python 3.9 and nothing else."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import make_stand_in as stand_in

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def write(target, name, data):
    os.makedirs(os.path.join(HERE, target), exist_ok=True)
    with open(os.path.join(HERE, target, name), "wb") as out:
        out.write(data)


def safetensors(header, payload):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return struct.pack("<Q", len(text)) + text + payload


def text(s):
    s = s.encode()
    return struct.pack("<Q", len(s)) + s


def value(kind, x):
    code = dict(u8=0, u32=4, f32=6, bool=7, str=8, arr=9)[kind]
    body = dict(u8=lambda: struct.pack("<B", x), u32=lambda: struct.pack("<I", x), f32=lambda: struct.pack("<f", x),
                bool=lambda: struct.pack("<B", x), str=lambda: text(x),
                arr=lambda: struct.pack("<IQ", x[0], len(x[1])) + b"".join(x[1]))[kind]()
    return struct.pack("<I", code) + body


def gguf(values, tensors, version=3):
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    for key, (kind, x) in values.items():
        out += text(key) + value(kind, x)
    at, payload = 0, b""
    for name, dims, kind, data in tensors:
        out += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", kind, at)
        payload += data + b"\0" * (-len(data) % 32)
        at = len(payload)
    return out + b"\0" * (-len(out) % 32) + payload


def llama_values(arch, **more):
    v = {"general.architecture": ("str", arch), f"{arch}.block_count": ("u32", 2), f"{arch}.embedding_length": ("u32", 64),
         f"{arch}.attention.head_count": ("u32", 4), f"{arch}.attention.head_count_kv": ("u32", 2),
         f"{arch}.feed_forward_length": ("u32", 96), f"{arch}.context_length": ("u32", 512),
         f"{arch}.attention.layer_norm_rms_epsilon": ("f32", 1e-5), f"{arch}.rope.freq_base": ("f32", 1e4),
         "tokenizer.ggml.model": ("str", "gpt2"),
         "tokenizer.ggml.tokens": ("arr", (8, [text("a"), text("b"), text("ab")])),
         "tokenizer.ggml.token_type": ("arr", (5, [struct.pack("<i", 1)] * 3)),
         "tokenizer.ggml.eos_token_id": ("u32", 2), "general.flag": ("bool", 1)}
    return v | {k.replace("__", "."): x for k, x in more.items()}


def main():
    entry = dict(dtype="BF16", shape=[2, 3], data_offsets=[0, 12])
    write("safetensors", "two", safetensors(dict(__metadata__=dict(format="pt"), a=entry, b=dict(dtype="F8_E4M3", shape=[4], data_offsets=[12, 16])), b"x" * 16))
    write("safetensors", "empty", safetensors({}, b""))
    write("safetensors", "scalar_and_escape", safetensors(b'{"\\u00e9\\n":{"shape":[],"dtype":"F32","data_offsets":[0,4]}}   ', b"1234"))
    write("safetensors", "unknown_type", safetensors(dict(a=dict(dtype="F4", shape=[8], data_offsets=[0, 4])), b"1234"))
    write("safetensors", "index", b"I" + json.dumps(dict(metadata=dict(total_size=4), weight_map=dict(a="x-1.safetensors"))).encode())
    dense = [("token_embd.weight", [64, 3], 1, b"\0" * 384), ("output_norm.weight", [64], 0, b"\0" * 256),
             ("blk.0.attn_q.weight", [64, 64], 2, b"\0" * (64 * 36)), ("blk.0.x", [256, 1], 12, b"\1" * 144)]
    write("gguf", "llama", gguf(llama_values("llama"), dense))
    write("gguf", "v2_unknown_type", gguf(llama_values("qwen2"), [("a", [256], 16, b"\0" * 66)], version=2))
    for arch, more in (("llama", {}), ("qwen3moe", {"qwen3moe__expert_count": ("u32", 4), "qwen3moe__expert_used_count": ("u32", 2),
                                                    "qwen3moe__expert_feed_forward_length": ("u32", 32)}),
                       ("gemma3", {"gemma3__attention.sliding_window": ("u32", 64)})):
        write("config", f"gguf_{arch}", gguf(llama_values(arch, **more), [("rope_freqs.weight", [8], 0, struct.pack("<8f", *range(1, 9)))]))
    write("config", "v41", json.dumps(dict(model_type="deepseek_v41", text_config=stand_in.TINY, vision_config=stand_in.TINY_VISION, image_token_id=318,
                                           quantization_config=dict(quant_method="fp8", weight_block_size=[32, 32], scale_fmt="ue8m0"))).encode())
    small = dict(vocab_size=320, hidden_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
                 bos_token_id=1, eos_token_id=[2, 3])
    write("config", "llama3", json.dumps(dict(small, model_type="llama", rope_scaling=dict(
        rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192))).encode())
    write("config", "qwen3_moe", json.dumps(dict(small, model_type="qwen3_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                                                 mlp_only_layers=[1], head_dim=16)).encode())
    write("config", "gemma3", json.dumps(dict(model_type="gemma3", text_config=dict(small, model_type="gemma3_text", sliding_window=32,
                                         rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
                                                              sliding_attention=dict(rope_type="default", rope_theta=1e4))))).encode())
    write("config", "v41_reference_names", json.dumps(dict(
        dim=128, n_layers=4, n_heads=4, head_dim=64, rope_head_dim=16, vocab_size=320, compress_ratios=[0, 2, 2, 1], kv_source_layers=[1, 3],
        index_source_layers=[1, 3], candidate_source_layer=-1, index_head_dim=32, n_activated_experts=2, moe_inter_dim=64, o_groups=2,
        rope_factor=16, original_seq_len=65536, score_func="sigmoid", route_scale=2.0)).encode())


if __name__ == "__main__":
    main()
