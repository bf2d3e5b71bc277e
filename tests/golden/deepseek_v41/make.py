#!/usr/bin/env python3
"""Writes the goldens of DeepSeek-V4.1: a tiny checkpoint for each config, and what the model must answer.

usage: make.py [--only NAME ...] [--parts checkpoint answers layers] [--modes MODE ...]   (in the environment of ../requirements-oracle.txt)

README.md lists the files and tensors. `answers` runs both independent implementations too, and fails unless they agree
with reference.py within AGREE.
"""
import argparse
import json
import os
import time

import numpy as np

import toy_tokenizer
from checkpoint import Checkpoint
from configs import CONFIGS, top_level
from formats import f32, i32, i64, write_safetensors
from prompts import draw, settle
from reference import Reference

HERE = os.path.dirname(os.path.abspath(__file__))
AGREE = 5e-5  # of logits whose standard deviation is about 1
N_GREEDY = 256
N_LONG = {"roles": 700, "plain": 2000, "mixed": 400, "wide": 200}


class Case:
    """One config with its weights and tokenizer."""

    def __init__(self, name):
        self.name = name
        text, self.seed, self.n_shards = CONFIGS[name]
        self.config = json.loads(json.dumps(text))
        self.token_map, n_keys = toy_tokenizer.token_map()
        self.tables = toy_tokenizer.engram_tables(self.config, n_keys)
        self.config["engram_compressed_vocab_size"] = n_keys
        self.config["engram_num_embeddings"] = [sum(map(sum, layer)) for layer in self.tables[0]]
        self.checkpoint = Checkpoint(self.config, self.seed)
        self.folder = os.path.join(HERE, name)

    def model(self, mode="float", jitter=None, engram=True):
        config, tables = self.config, self.tables
        if not engram:
            config, tables = dict(config, engram_layer_ids=[]), ([], [])
        return Reference(config, self.checkpoint.values, self.token_map, tables, mode, jitter)

    def write_checkpoint(self):
        os.makedirs(self.folder, exist_ok=True)
        self._dump("config.json", top_level(self.config, {"image": toy_tokenizer.IMAGE_ID}), indent=1)
        self._dump("tokenizer.json", toy_tokenizer.tokenizer_json(), ensure_ascii=False, separators=(",", ":"))
        self.checkpoint.write(self.folder, self.n_shards)

    def _dump(self, file, value, **how):
        with open(os.path.join(self.folder, file), "w") as out:
            json.dump(value, out, **how)

    def write(self, file, tensors, **metadata):
        write_safetensors(os.path.join(self.folder, file), tensors,
                          {"script": "tests/golden/deepseek_v41/make.py", "seed": self.seed, **metadata})


def check_chunking(case):
    """The transcription itself must not depend on how a prompt is cut."""
    prompt = draw(case, np.random.default_rng(1), 44, with_image=True)
    whole = case.model().forward(prompt.ids, prompt.is_image, prompt.span)
    model, at, parts = case.model(), 0, []
    for n in (1, 6, 7, 2, 9, 19):
        here = slice(at, at + n)
        span = prompt.span[prompt.is_image[:at].sum():prompt.is_image[:at + n].sum()]
        parts.append(model.forward(prompt.ids[here], prompt.is_image[here], span if len(span) else None))
        at += n
    worst = np.abs(np.concatenate(parts) - whole).max()
    assert at == len(prompt.ids) and worst < 1e-9, worst


def make_answers(case):
    import oracles

    check_chunking(case)
    settled = settle(case, N_LONG[case.name], N_GREEDY)
    print(f"  logit deviation {settled['ninety_seven'][1].logits.std():.2f}, smallest greedy gap "
          f"{min(a.greedy_gap.min() for _, a in settled.values()):.1e}, distinct greedy ids "
          f"{[len(set(a.greedy)) for _, a in settled.values()]}", flush=True)
    figures, oracle_logits = oracles.compare(case, settled, lambda: settle(case, 200, 64, engram=False))
    for what, worst in figures.items():
        print(f"  {what}: {worst:.1e}", flush=True)
        assert worst <= AGREE, (case.name, what, worst)
    out = {"token_map": i32(case.token_map)}
    for slot, layer in enumerate(case.config["engram_layer_ids"]):
        out[f"engram.{layer}.primes"] = i64(np.ravel(case.tables[0][slot]))
        out[f"engram.{layer}.multipliers"] = i64(case.tables[1][slot])
    for name, (prompt, a) in settled.items():
        rows = prompt.rows()
        out |= {f"{name}.ids": i32(prompt.ids), f"{name}.logit_rows": i32(rows), f"{name}.logits": f32(a.logits[rows]),
                f"{name}.oracle_logits": f32(oracle_logits[name][rows]), f"{name}.greedy": i32(a.greedy),
                f"{name}.greedy_gap": f32(a.greedy_gap), f"{name}.draft_anchor": i32([a.anchor]),
                f"{name}.draft_ids": i32(a.draft_ids), f"{name}.draft_logits": f32(a.draft_logits),
                f"{name}.draft_confidence": f32(a.confidence)}
        if prompt.span is not None:
            out |= {f"{name}.is_image": i32(prompt.is_image), f"{name}.image_embeddings": f32(prompt.span)}
    case.write("golden.safetensors", out, **oracles.versions(), **{k: f"{v:.2e}" for k, v in figures.items()})


def make_layers(case, modes):
    from layers import layer_goldens

    for mode in modes:
        case.write(f"layers-{mode}.safetensors", layer_goldens(case, mode), numpy=np.__version__)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(CONFIGS))
    parser.add_argument("--parts", nargs="*", default=["checkpoint", "answers", "layers"])
    parser.add_argument("--modes", nargs="*", default=["float", "precise", "reference"], help="of layers")
    args = parser.parse_args()
    for name in args.only:
        begun, case = time.time(), Case(name)
        print(name, flush=True)
        if "checkpoint" in args.parts:
            case.write_checkpoint()
        if "answers" in args.parts:
            make_answers(case)
        if "layers" in args.parts:
            make_layers(case, args.modes)
        print(f"  {time.time() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
