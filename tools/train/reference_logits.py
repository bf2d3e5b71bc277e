"""Writes token ids and fp32 logits of the exported model, for the engine's tests.

    reference_logits.py --model models/gannet-mini --out tests/golden/mini/logits.safetensors

Per prompt: ids [T]; positions [k] whose logits are kept; logits_float [k,V] (fp32, caches unquantised) and logits_cached [k,V]
(fp32, window, compressed and index caches in their formats); greedy: continuation in the first mode; draft: five greedy draft
tokens behind greedy[0] in the first mode; confidence: their five raw logits. Made by this script from the released bytes.
"""
import argparse
import os
import random

import torch
from safetensors.torch import save_file

import chat
import dspark
import tools
from evaluate import CHATS, PROSE, PYTHON, Bench
from generate import batch, generate, run
from model import CACHED, FLOAT


def prompts(b):
    talk = [dict(role="user", content=CHATS[2])]
    m = tools.conversation(random.Random(5), True)
    return {"prose": [0] + b.ids(PROSE[0]), "python": [0] + b.ids("".join(PYTHON)),
            "chat": b.ids(chat.encode(talk, open_turn=True)), "tools": b.ids(chat.encode(m, True, open_turn=False))[:256]}


def draft(b, ids, anchor):
    """Greedy block behind `anchor`, which stands at position len(ids)."""
    m, w, n = b.model, b.model.weights(FLOAT), b.c["dspark_block_size"]
    x = batch([ids + [anchor]], len(ids) + 1, b.device)
    out = run(m, x, FLOAT, w)
    padded = torch.nn.functional.pad(x, (0, out["taps"].shape[1] - x.shape[1]), value=2)
    rows, base, _ = dspark.draft_rows(m, padded, out["taps"], torch.tensor([[len(ids)]], device=b.device), FLOAT, w)
    prev, tokens, raw = torch.tensor(anchor), [], []
    for k in range(n):
        e = w("markov_embed")[prev]
        raw.append((torch.cat([rows[0, 0, k], e]) * w("confidence")[0]).sum())
        prev = (base[0, 0, k] @ w("head").T + e @ w("markov_head").T).argmax()
        tokens.append(prev)
    return torch.stack(tokens).int(), torch.stack(raw)


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", required=True)
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    b, out = Bench(a.model, "cpu"), {}
    for name, ids in prompts(b).items():
        x, T = torch.tensor([ids]), len(ids)
        at = torch.linspace(0, T - 1, 7).round().long()
        full = b.model.logits(x, FLOAT)[0]
        none = torch.empty(0, dtype=torch.long)
        greedy = generate(b.model, [ids], FLOAT, none, 8, 0.0)[0]
        out |= {f"{name}.ids": x[0].int(), f"{name}.positions": at.int(), f"{name}.logits_float": full[at].contiguous(),
                f"{name}.logits_cached": b.model.logits(x, CACHED)[0, at].contiguous(), f"{name}.greedy": torch.tensor(greedy).int()}
        out[f"{name}.draft"], out[f"{name}.confidence"] = draft(b, ids, greedy[0])
        print(name, T, "tokens:", repr(b.tok.decode(greedy)), "draft", repr(b.tok.decode(out[f"{name}.draft"].tolist())), flush=True)
    os.makedirs(os.path.dirname(a.out), exist_ok=True)
    save_file(out, a.out, {"made_by": "tools/train/reference_logits.py"})


if __name__ == "__main__":
    main()
