#!/usr/bin/env python3
"""Writes the goldens of DeepSeek-V4.1: a tiny checkpoint for each config, and what the model must answer.

usage: make.py [--only NAME ...] [--without-oracles]      (in the environment of ../requirements-oracle.txt)

README.md lists the files and tensors. Without --without-oracles both independent implementations are run too, and
the script fails unless they agree with reference.py within AGREE.
"""
import argparse
import json
import os
import sys
import time

import numpy as np

import oracles
import toy_tokenizer
from checkpoint import Checkpoint
from configs import CONFIGS, top_level
from formats import f32, i32, i64, to_bf16, write_safetensors
from layers import layer_goldens
from reference import Reference

HERE = os.path.dirname(os.path.abspath(__file__))
AGREE = 5e-5  # of logits whose standard deviation is about 1
N_GREEDY = 256
LONG = {"roles": 2000, "plain": 600, "mixed": 400, "wide": 200}


class Case:
    """One config with its weights, tokenizer and prompts."""

    def __init__(self, name):
        self.name = name
        text, self.seed, self.n_shards = CONFIGS[name]
        self.config = json.loads(json.dumps(text))
        self.token_map, n_keys = toy_tokenizer.token_map()
        self.tables = toy_tokenizer.engram_tables(self.config, n_keys)
        self.config["engram_compressed_vocab_size"] = n_keys
        self.config["engram_num_embeddings"] = [sum(map(sum, layer)) for layer in self.tables[0]]
        self.checkpoint = Checkpoint(self.config, self.seed)
        self.prompts = self._prompts()

    def _prompts(self):
        """name -> (ids, is_image, embedding rows of the image positions, rows whose logits are stored)."""
        rng = np.random.default_rng(1000 + self.seed)
        text = lambda n: rng.integers(3, 305, n)
        result = {}
        for name, n in (("one", 1), ("forty", 40), ("ninety_seven", 97), ("long", LONG[self.name])):
            if n <= 40:
                rows = np.arange(n)
            else:
                rows = np.unique(np.append(np.linspace(0, n - 1, 33 if n == 97 else 12).astype(int), n - 1))
            result[name] = (text(n), np.zeros(n, bool), None, rows)
        # START, 2 lines of 3 cells and a NEWLINE, END
        ids, is_image = text(44), np.zeros(44, bool)
        is_image[13:23] = True
        ids[is_image] = toy_tokenizer.IMAGE_ID
        span = to_bf16(rng.standard_normal((10, self.config["hidden_size"])))
        for i, part in {0: "start", 4: "newline", 8: "newline", 9: "end"}.items():
            span[i] = self.checkpoint.values["image_" + part]
        result["image"] = (ids, is_image, span, np.arange(44))
        return result

    def model(self, mode="float", jitter=None, engram=True):
        config, tables = self.config, self.tables
        if not engram:
            config, tables = dict(config, engram_layer_ids=[]), ([], [])
        return Reference(config, self.checkpoint.values, self.token_map, tables, mode, jitter)

    def write_checkpoint(self, folder):
        os.makedirs(folder, exist_ok=True)
        dump = lambda file, value, **how: json.dump(value, open(os.path.join(folder, file), "w"), **how)
        dump("config.json", top_level(self.config, {"image": toy_tokenizer.IMAGE_ID}), indent=1)
        dump("tokenizer.json", toy_tokenizer.tokenizer_json(), ensure_ascii=False, separators=(",", ":"))
        self.checkpoint.write(folder, self.n_shards)


def end_to_end(case, engram=True):
    """Float-mode answers of every prompt: name -> arrays."""
    answers = {}
    for name, (ids, is_image, span, rows) in case.prompts.items():
        model = case.model(engram=engram)
        logits = model.forward(ids, is_image, span)
        anchor = int(logits[-1].argmax())
        draft_ids, draft_logits, confidence = model.draft(anchor)
        taps = model.trace["taps"]
        greedy, gaps, row = [], [], logits[-1]
        for _ in range(N_GREEDY):
            best = np.sort(row)[-2:]
            greedy.append(int(row.argmax()))
            gaps.append(best[1] - best[0])
            row = model.forward(greedy[-1:])[-1]
        answers[name] = dict(logits=logits, rows=rows, greedy=np.array(greedy), greedy_gap=np.array(gaps), anchor=anchor,
                             draft_ids=np.array(draft_ids), draft_logits=draft_logits, confidence=confidence, taps=taps)
    return answers


def check_chunking(case):
    """The transcription itself must not depend on how a prompt is cut."""
    ids, is_image, span, _ = case.prompts["image"]
    whole = case.model().forward(ids, is_image, span)
    model, at, parts = case.model(), 0, []
    for n in (1, 6, 7, 2, 9, 19):
        here = slice(at, at + n)
        rows = span[is_image[:at].sum():is_image[:at + n].sum()]
        parts.append(model.forward(ids[here], is_image[here], rows if len(rows) else None))
        at += n
    worst = np.abs(np.concatenate(parts) - whole).max()
    assert at == len(ids) and worst < 1e-9, worst


def golden_tensors(case, answers, oracle_logits):
    out = {"token_map": i32(case.token_map)}
    for slot, layer in enumerate(case.config["engram_layer_ids"]):
        out[f"engram.{layer}.primes"] = i64(np.ravel(case.tables[0][slot]))
        out[f"engram.{layer}.multipliers"] = i64(case.tables[1][slot])
    for name, (ids, is_image, span, rows) in case.prompts.items():
        a = answers[name]
        out |= {f"{name}.ids": i32(ids), f"{name}.logit_rows": i32(rows), f"{name}.logits": f32(a["logits"][rows]),
                f"{name}.greedy": i32(a["greedy"]), f"{name}.greedy_gap": f32(a["greedy_gap"]),
                f"{name}.draft_ids": i32(a["draft_ids"]), f"{name}.draft_logits": f32(a["draft_logits"]),
                f"{name}.draft_confidence": f32(a["confidence"])}
        if name in oracle_logits:
            out[f"{name}.oracle_logits"] = f32(oracle_logits[name][rows])
        if span is not None:
            out |= {f"{name}.is_image": i32(is_image), f"{name}.image_embeddings": f32(span)}
    return out


def make(name, with_oracles):
    begun, case = time.time(), Case(name)
    folder = os.path.join(HERE, name)
    case.write_checkpoint(folder)
    check_chunking(case)
    answers = end_to_end(case)
    deviation = answers["ninety_seven"]["logits"].std()
    print(f"{name}: logit deviation {deviation:.2f}, smallest greedy gap "
          f"{min(a['greedy_gap'].min() for a in answers.values()):.1e}, distinct greedy ids "
          f"{[len(set(a['greedy'])) for a in answers.values()]}", flush=True)
    figures, oracle_logits = {}, {}
    if with_oracles:
        figures, oracle_logits = oracles.compare(case, folder, answers, end_to_end)
        for what, worst in figures.items():
            print(f"  {what}: {worst:.1e}", flush=True)
            assert worst <= AGREE, (name, what, worst)
    metadata = dict(script="tests/golden/deepseek_v41/make.py", seed=case.seed, **oracles.versions(),
                    **{k: f"{v:.2e}" for k, v in figures.items()})
    write_safetensors(os.path.join(folder, "golden.safetensors"), golden_tensors(case, answers, oracle_logits), metadata)
    for mode in ("float", "precise", "reference"):
        if mode == "float" and name != "roles":
            continue
        write_safetensors(os.path.join(folder, f"layers-{mode}.safetensors"), layer_goldens(case, mode), metadata)
    print(f"  {time.time() - begun:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(CONFIGS))
    parser.add_argument("--without-oracles", action="store_true")
    args = parser.parse_args()
    for name in args.only:
        make(name, not args.without_oracles)


if __name__ == "__main__":
    sys.exit(main())
