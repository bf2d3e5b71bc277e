#!/usr/bin/env python3
"""Writes the goldens of the Llama class: tiny random models, saved by transformers, and transformers' own answers.

usage: make.py [--only NAME ...]          (in the environment of ../requirements-oracle.txt)

Each folder holds config.json, model.safetensors and golden.safetensors. The answers are those of the saved model, read
back, in fp32 with eager attention: logits at every position of every prompt, and 96 greedy tokens behind the prompts
that are longer than one token, with the gap between the two best logits of every step.
"""
import argparse
import importlib.metadata
import json
import os
import shutil

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import (AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, Qwen2Config, Qwen3Config,
                          Qwen3MoeConfig)

HERE = os.path.dirname(os.path.abspath(__file__))
N_GREEDY = 96
PROMPTS = (1, 9, 40, 97)  # tokens; the window of Gemma is 16
SMALL = dict(vocab_size=160, hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2,
             bos_token_id=1, eos_token_id=2, max_position_embeddings=512)

# name -> (config, element type of the saved weights)
MODELS = {
    "llama2": (LlamaConfig(**{**SMALL, "num_key_value_heads": 4}, num_hidden_layers=3, rms_norm_eps=1e-5,
                           tie_word_embeddings=False), "float32"),
    # original_max_position_embeddings is small so that all three ranges of wavelengths occur below position 193
    "llama3": (LlamaConfig(**{**SMALL, "max_position_embeddings": 1024}, num_hidden_layers=3, head_dim=32,
                           rms_norm_eps=1e-5, rope_theta=5000.0, tie_word_embeddings=True,
                           rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                             original_max_position_embeddings=64)), "bfloat16"),
    "qwen2": (Qwen2Config(**SMALL, num_hidden_layers=3, rope_theta=1e6, tie_word_embeddings=True, rms_norm_eps=1e-6),
              "bfloat16"),
    "qwen3": (Qwen3Config(**SMALL, num_hidden_layers=3, head_dim=32, rope_theta=1e6, tie_word_embeddings=False),
              "bfloat16"),
    # layer 1 is dense; the others choose 3 of 8 experts
    "qwen3_moe": (Qwen3MoeConfig(**SMALL, num_hidden_layers=3, head_dim=16, rope_theta=1e6, num_experts=8,
                                 num_experts_per_tok=3, moe_intermediate_size=32, norm_topk_prob=True,
                                 decoder_sparse_step=1, mlp_only_layers=[1], tie_word_embeddings=False), "bfloat16"),
    # layer 2 of each three sees everything, with the other rotary base
    "gemma3": (Gemma3TextConfig(**SMALL, num_hidden_layers=4, head_dim=16, sliding_window=16, query_pre_attn_scalar=24,
                                layer_types=["sliding_attention", "sliding_attention", "full_attention",
                                             "sliding_attention"],
                                rope_theta=1e6, rope_local_base_freq=1e4, tie_word_embeddings=True), "bfloat16"),
}


def randomise(model, seed):
    """Every parameter, norms and biases too, at scales that keep logits near a deviation of 1."""
    rng = torch.Generator().manual_seed(seed)
    tied = model.config.tie_word_embeddings
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=rng)
            if "norm" in name:
                p.copy_((0.0 if "gemma" in model.config.model_type else 1.0) + 0.1 * noise)
            elif "embed_tokens" in name:
                p.copy_(noise * (p.shape[1] ** -0.5 if tied else 1.0))
            elif name.endswith("bias"):
                p.copy_(0.3 * noise)
            else:
                p.copy_(noise * p.shape[-1] ** -0.5)


def answers(model, seed):
    rng, out = np.random.default_rng(seed), {}
    for n in PROMPTS:
        ids = torch.from_numpy(rng.integers(3, SMALL["vocab_size"], n))[None]
        out[f"p{n}.ids"] = ids[0].numpy().astype(np.int32)
        out[f"p{n}.logits"] = model(ids, use_cache=False).logits[0].numpy()
        if n == 1:
            continue
        greedy, gaps = [], []
        for _ in range(N_GREEDY):
            row = model(ids, use_cache=False).logits[0, -1]
            best = row.topk(2).values
            greedy.append(int(row.argmax()))
            gaps.append(float(best[0] - best[1]))
            ids = torch.cat([ids, torch.tensor([[greedy[-1]]])], 1)
        out[f"p{n}.greedy"] = np.array(greedy, np.int32)
        out[f"p{n}.greedy_gap"] = np.array(gaps, np.float32)
    return out


def make(name, seed):
    config, dtype = MODELS[name]
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    randomise(model, seed)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    if os.path.exists(os.path.join(folder, "generation_config.json")):
        os.remove(os.path.join(folder, "generation_config.json"))
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                       output_loading_info=True)
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    model.eval()
    with torch.no_grad():
        out = answers(model, seed + 100)
    versions = {p: importlib.metadata.version(p) for p in ("transformers", "torch")}
    save_file(out, os.path.join(folder, "golden.safetensors"),
              {"script": "tests/golden/llama/make.py", "seed": str(seed), **versions})
    size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    print(f"{name}: logit deviation {out['p97.logits'].std():.2f}, smallest greedy gap "
          f"{min(out[k].min() for k in out if k.endswith('gap')):.1e}, distinct greedy ids "
          f"{[len(set(out[k].tolist())) for k in out if k.endswith('greedy')]}, {size} bytes", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    torch.set_num_threads(1)
    for name in parser.parse_args().only:
        make(name, 10 + list(MODELS).index(name))


if __name__ == "__main__":
    main()
