"""Writes and reads checkpoints in the released layout: names, dtypes, scales, two shards and an index.

    export.py --weights state.pt --tokenizer DIR --out models/gannet-mini
"""
import argparse
import hashlib
import json
import os
import shutil

import torch
from safetensors.torch import load_file, save_file

import config
from quant import decode, encode

SHARDS = 2


def released_names(c):
    """name here -> function(indices) -> released name without `.weight`. Stacks run over blocks, sources or experts."""
    L, M = c["num_hidden_layers"], c["num_nextn_predict_layers"]
    block = lambda n: f"layers.{n}" if n < L else f"mtp.{n - L}"
    layer, draft = lambda n: f"layers.{n}", lambda n: f"mtp.{n}"
    at = lambda ids, tail: lambda i: f"layers.{ids[i]}.{tail}"
    kv, index, eng = c["kv_source_layer_ids"], c["index_source_layer_ids"], c["engram_layer_ids"]
    last = f"mtp.{M - 1}"
    pooled = [l for l in kv if c["compress_ratios"][l] > 1]
    per_block = dict(attn_norm="attn_norm", ffn_norm="ffn_norm", hc_attn_fn="hc_attn_fn", hc_attn_base="hc_attn_base",
                     hc_attn_scale="hc_attn_scale", hc_ffn_fn="hc_ffn_fn", hc_ffn_base="hc_ffn_base",
                     hc_ffn_scale="hc_ffn_scale", attn_sink="attn.attn_sink", wq_a="attn.wq_a", q_norm="attn.q_norm",
                     wq_b="attn.wq_b", wkv="attn.wkv", kv_norm="attn.kv_norm", wo_a="attn.wo_a", wo_b="attn.wo_b",
                     shared_w1="ffn.shared_experts.w1", shared_w2="ffn.shared_experts.w2",
                     shared_w3="ffn.shared_experts.w3")
    names = {k: (lambda i, v=v: f"{block(i)}.{v}") for k, v in per_block.items()}
    for part, owner in (("", layer), ("draft_", draft)):
        names[part + "gate"] = lambda i, o=owner: f"{o(i)}.ffn.gate"
        names[part + "gate_bias"] = lambda i, o=owner: f"{o(i)}.ffn.gate.bias"
        for m in ("w1", "w2", "w3"):
            names[part + m] = lambda i, e, o=owner, m=m: f"{o(i)}.ffn.experts.{e}.{m}"
    names |= dict(comp_wkv=at(kv, "attn.compressor.wkv"), comp_wgate=at(pooled, "attn.compressor.wgate"),
                  comp_norm=at(kv, "attn.compressor.norm"), idx_wk=at(kv, "attn.indexer.wk"),
                  idx_k_norm=at(kv, "attn.indexer.k_norm"), idx_wq_b=at(index, "attn.indexer.wq_b"),
                  idx_weights=at(index, "attn.indexer.weights_proj"), engram_wkv=at(eng, "engram.wkv"),
                  engram_q=at(eng, "engram.q_weight"), engram_k=at(eng, "engram.k_weight"))
    for i, l in enumerate(eng):
        names[f"engram_table{i}"] = lambda l=l: f"layers.{l}.engram.embed"
    names |= {k: (lambda v=v: v) for k, v in dict(
        embed="embed", head="head", norm="norm", main_proj="mtp.0.main_proj", main_norm="mtp.0.main_norm",
        draft_norm=last + ".norm", markov_embed=last + ".markov_head.embed", markov_head=last + ".markov_head.head",
        confidence=last + ".confidence_head.proj").items()}
    return names


BARE = ("hc_", "attn_sink", "gate_bias", "draft_gate_bias", "engram_q", "engram_k")   # names that take no `.weight`


def slices(c):
    """(name here, index tuple, kind, released name) of every released tensor."""
    names = released_names(c)
    for name, (kind, shape) in config.inventory(c).items():
        unstacked = name in config.UNSTACKED or name.startswith("engram_table")
        depth = 0 if unstacked else 2 if len(shape) == 4 else 1
        for idx in torch.cartesian_prod(*[torch.arange(n) for n in shape[:depth]]).reshape(-1, depth).tolist() \
                if depth else [[]]:
            full = names[name](*idx)
            yield name, tuple(idx), kind, full if name.startswith(BARE) else full + ".weight"


def flat_values(c, params):
    """{released name: fp32 value that the format holds}; what a loader gets after dequantising."""
    out = {}
    for name, idx, kind, full in slices(c):
        out[full] = decode(*encode(params[name][idx], kind), kind)
        if name in ("gate_bias", "draft_gate_bias"):
            out[full + "_vl"] = out[full].clone()            # text only: image positions would route like text
    return out


def tensors(c, params):
    out = {}
    for name, idx, kind, full in slices(c):
        out[full], scale = encode(params[name][idx], kind)
        out[full] = out[full].contiguous().clone()
        if scale is not None:
            out[full.removesuffix("weight") + "scale"] = scale.contiguous().view(torch.float8_e8m0fnu).clone()
        if name in ("gate_bias", "draft_gate_bias"):
            out[full + "_vl"] = out[full].clone()
    return out


def write(c, params, out_dir, **top):
    """Two shards of about equal size, in layer order, the index, and config.json with `top` at its top level."""
    os.makedirs(out_dir, exist_ok=True)
    all_t = tensors(c, params)
    bytes_of = lambda t: t.numel() * t.element_size()
    total = sum(map(bytes_of, all_t.values()))
    shard, where, run = [{} for _ in range(SHARDS)], {}, 0
    for name, t in all_t.items():
        i = min(SHARDS - 1, run * SHARDS // total)
        shard[i][name], run = t, run + bytes_of(t)
        where[name] = f"model-{i + 1:05}-of-{SHARDS:05}.safetensors"
    for i, s in enumerate(shard):
        save_file(s, f"{out_dir}/model-{i + 1:05}-of-{SHARDS:05}.safetensors", {"format": "pt"})
    json.dump(dict(metadata=dict(total_size=total), weight_map=where),
              open(f"{out_dir}/model.safetensors.index.json", "w"), indent=1, sort_keys=True)
    json.dump(config.wrap(c, **top), open(f"{out_dir}/config.json", "w"), indent=1)


def read(model_dir):
    """(text_config, params) of an exported checkpoint; params hold the dequantised values, so that quantising them
    again changes nothing."""
    c, raw = config.load(f"{model_dir}/config.json"), {}
    for f in sorted(set(json.load(open(f"{model_dir}/model.safetensors.index.json"))["weight_map"].values())):
        raw |= load_file(f"{model_dir}/{f}")
    params = {k: torch.zeros(shape) for k, (_, shape) in config.inventory(c).items()}
    for name, idx, kind, full in slices(c):
        scale = raw.get(full.removesuffix("weight") + "scale") if kind in ("fp8", "row8", "fp4") else None
        params[name][idx] = decode(raw[full], None if scale is None else scale.view(torch.uint8), kind)
    return c, params


def checksums(out_dir):
    files = sorted(f for f in os.listdir(out_dir) if f != "SHA256SUMS" and not f.endswith(".md"))
    with open(f"{out_dir}/SHA256SUMS", "w") as f:
        for name in files:
            f.write(hashlib.sha256(open(f"{out_dir}/{name}", "rb").read()).hexdigest() + f"  {name}\n")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--weights", help="fp32 or bf16 parameters as train.py saves them; omitted: only refresh SHA256SUMS")
    ap.add_argument("--tokenizer", help="folder with tokenizer.json and its companions")
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    if a.weights:
        state = torch.load(a.weights, map_location="cpu", weights_only=True)
        write(state["config"], {k: v.float() for k, v in state["params"].items()}, a.out, **state.get("top", {}))
    if a.tokenizer:
        for f in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
            shutil.copy(f"{a.tokenizer}/{f}", a.out)
    checksums(a.out)
