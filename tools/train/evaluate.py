"""Figures of a trained model: bits per byte, ablations, tool calls, samples, acceptance and calibration.

    evaluate.py --model models/gannet-mini --rows ROWS --out figures.json [--only bpb,ablation,...] [--quick]
"""
import argparse
import json
import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import chat
import export
import synth
import tools
from generate import generate, speculate
from model import CACHED, Model, Numerics

PRECISE = Numerics(torch.bfloat16, False, True, True)          # bf16 activations, caches in their formats
SEED = 20_000_003                                              # of the evaluation's own tool cases and problems
SOURCES = ("docs", "words", "python", "story", "chat", "think", "tools")
PROSE = ["Once upon a time, there was a little fox who lived in a forest. One day,",
         "The old lighthouse stood at the edge of the sea. Every evening, the keeper",
         "Water is important because", "The list of files is stored in the database. When the server starts, it"]
PYTHON = ["def add(a, b):\n    \"\"\"Return the sum of a and b.\"\"\"\n", "import os\nimport sys\n\n\ndef main():\n",
          "class Point:\n    def __init__(self, x, y):\n", "for i in range(10):\n"]
CHATS = ["Hello! How are you?", "Write a short story about a brave mouse.", "What is a volcano?", "How do I bake bread?",
         "Why is sleep important?", "Tell me about the moon.", "My name is Clara, I live in Oslo and I have a cat. What is my name?",
         "What is 27 + 35?", "Tom has 14 apples and gets 5 more. How many apples does Tom have now?", "Give me some tips to save money."]


class Bench:
    def __init__(self, folder, device):
        self.c, params = export.read(folder)
        self.tok = Tokenizer.from_file(f"{folder}/tokenizer.json")
        import tokenizer
        self.model = Model(self.c, tokenizer.token_map(self.tok), {k: v.to(device) for k, v in params.items()}, device)
        never = [t for t in [*tokenizer.HEAD, *tokenizer.SPECIAL_TAIL, *tokenizer.TAIL]
                 if t not in (chat.EOS, chat.THINK, chat.END_THINK, chat.DSML)]
        self.ban = torch.tensor([self.tok.token_to_id(t) for t in never], device=device)
        self.device = device

    def ids(self, text):
        return self.tok.encode(text, add_special_tokens=False).ids

    def text(self, ids):
        return self.tok.decode([i for i in ids if i != 1], skip_special_tokens=False)

    # ---- losses ----------------------------------------------------------------------------------------------------
    @torch.no_grad()
    def bits_per_byte(self, texts):
        """{source: [text]} -> {source: bits per byte}: every token behind BOS counts, as cut by the texts' own length."""
        out = {}
        for source, part in texts.items():
            bits = n = 0
            for i in range(0, len(part), 16):
                ids = [([] if t.startswith(chat.BOS) else [0]) + self.ids(t) for t in part[i:i + 16]]
                ids = [r[:self.c["max_position_embeddings"]] for r in ids]
                x = torch.tensor([r + [2] * (max(map(len, ids)) - len(r)) for r in ids], device=self.device)
                logits = self.model.logits(x, CACHED)[:, :-1]
                nll = F.cross_entropy(logits.transpose(1, 2), x[:, 1:], ignore_index=2, reduction="sum")
                bits += float(nll) / math.log(2)
                n += sum(len(self.tok.decode(r[1:], skip_special_tokens=False).encode()) for r in ids)
            out[source] = round(bits / n, 4)
        return out

    @torch.no_grad()
    def row_loss(self, rows, **switch):
        """Nats a token over whole rows, and over their second halves only (where the window is far from the start)."""
        total, late, n, m = 0.0, 0.0, 0, 0
        for i in range(0, len(rows), 8):
            x = torch.from_numpy(rows[i:i + 8].astype(np.int64)).to(self.device)
            nll = F.cross_entropy(self.model.logits(x[:, :-1], CACHED, **switch).transpose(1, 2), x[:, 1:], ignore_index=2,
                                  reduction="none")
            half = nll.shape[1] // 2
            total, n = total + float(nll.sum()), n + int((x[:, 1:] != 2).sum())
            late, m = late + float(nll[:, half:].sum()), m + int((x[:, 1 + half:] != 2).sum())
        return round(total / n, 4), round(late / m, 4)

    def ablations(self, folder, rows_each):
        cases = dict(full={}, no_engram=dict(no_engram=True), window_only=dict(window_only=True),
                     random_selection=dict(random_selection=True))
        out = {}
        for source in SOURCES:
            rows = np.load(f"{folder}/held-{source}.npy")[:rows_each]
            if len(rows):
                out[source] = {k: self.row_loss(rows, **s) for k, s in cases.items()}
                print(source, out[source], flush=True)
        return out

    # ---- conversations ---------------------------------------------------------------------------------------------
    def tool_cases(self, n, max_new):
        """Freshly generated cases, half with thinking: is the reply one or more valid calls, and are they the right ones?"""
        rng, cases = random.Random(SEED), []
        while len(cases) < n:
            m = tools.conversation(rng, len(cases) % 2 == 1)
            turn = next((i for i, x in enumerate(m) if x.get("calls")), None)
            if turn == 2:                                            # system, user, call
                cases.append(m[:3])
        replies = self.reply([m[:2] for m in cases], [i % 2 == 1 for i in range(n)], max_new)
        valid = exact = 0
        samples = []
        for i, (m, text) in enumerate(zip(cases, replies)):
            try:
                got = chat.parse(text, i % 2 == 1)["calls"]
            except ValueError:
                got = []
            ok = bool(got) and all(chat.valid_call(g, m[0]["tools"]) for g in got)
            same = got == m[2]["calls"]
            valid, exact = valid + ok, exact + same
            samples.append(dict(user=m[1]["content"], tools=[t["name"] for t in m[0]["tools"]], reply=text, valid=ok, exact=same))
        return dict(cases=n, valid=valid / n, exact=exact / n, samples=samples)

    def reply(self, conversations, thinking, max_new, temperature=0.0):
        prompts = [self.ids(chat.encode(m, t, open_turn=True)) for m, t in zip(conversations, thinking)]
        return [self.text(r) for r in generate(self.model, prompts, PRECISE, self.ban, max_new, temperature)]

    def thinking_closes(self, n, max_new):
        rng = random.Random(SEED + 1)
        asks = [synth.problem(rng) if i % 2 else (synth.explain_prompt(rng), None, None) for i in range(n)]
        replies = self.reply([[dict(role="user", content=q)] for q, _, _ in asks], [True] * n, max_new)
        right = [chat.END_THINK in r and r.split(chat.END_THINK)[1].strip() == a for r, (_, _, a) in zip(replies, asks) if a]
        loose = [chat.END_THINK in r and self.key(a) in r.split(chat.END_THINK)[1] for r, (_, _, a) in zip(replies, asks) if a]
        return dict(cases=n, closed=sum(chat.END_THINK in r for r in replies) / n, problems=len(right),
                    exact_answer=sum(right) / len(right), holds_answer=sum(loose) / len(loose), samples=replies[:8],
                    asks=[q for q, _, _ in asks[:8]])

    @staticmethod
    def key(answer):
        """What an answer has to contain: its last number, or all of it."""
        digits = [w.strip(".,?!") for w in answer.split() if w.strip(".,?!").isdigit()]
        return digits[-1] if digits else answer.rstrip(".")

    def samples(self, max_new):
        talk = [[dict(role="user", content=q)] for q in CHATS]
        out = dict(chat=list(zip(CHATS, self.reply(talk, [False] * len(talk), max_new))),
                   thinking=list(zip(CHATS, self.reply(talk, [True] * len(talk), max_new))))
        torch.manual_seed(0)
        for kind, starts in (("prose", PROSE), ("python", PYTHON)):
            new = generate(self.model, [[0] + self.ids(s) for s in starts], PRECISE, self.ban, max_new, 0.7)
            out[kind] = [(s, self.text(t)) for s, t in zip(starts, new)]
        return out

    # ---- drafts ----------------------------------------------------------------------------------------------------
    def prompts(self, folder, each):
        """Held-out openings by source: half of a prose row's first 256 tokens; a conversation up to its first reply."""
        out = {}
        for source in SOURCES:
            picked = []
            for row in np.load(f"{folder}/held-{source}.npy"):
                ids = [int(t) for t in row]
                starts = [i for i, t in enumerate(ids) if t == 0]
                if source in ("chat", "think", "tools"):
                    heads = {self.tok.token_to_id(chat.THINK), self.tok.token_to_id(chat.END_THINK)}
                    user = self.tok.token_to_id(chat.ASSISTANT)
                    end = next((i for i in range(1, len(ids)) if ids[i - 1] == user and ids[i] in heads), None)
                    if ids[0] == 0 and end and end < 600:
                        picked.append(ids[:end + 1])
                elif starts and starts[0] + 128 < len(ids):
                    picked.append(ids[starts[0]:starts[0] + 128])
                if len(picked) == each:
                    break
            out[source] = picked
        return out

    def acceptance(self, folder, each, max_new, temperature):
        torch.manual_seed(1)
        result, every = {}, []
        for source, prompts in self.prompts(folder, each).items():
            if prompts:
                new, rounds = speculate(self.model, prompts, PRECISE, self.ban, max_new, temperature)
                result[source] = dict(length=round(1 + sum(a for a, _ in rounds) / len(rounds), 3), rounds=len(rounds),
                                      distinct4=round(distinct(new), 3), bpb=self.own_bits(prompts, new))
                every += rounds
                print(temperature, source, result[source], flush=True)
        n = self.c["dspark_block_size"]
        reached = [sum(a >= k for a, _ in every) for k in range(n + 1)]
        result["all"] = dict(length=round(1 + sum(a for a, _ in every) / len(every), 3), rounds=len(every),
                             conditional=[round(reached[k + 1] / max(reached[k], 1), 3) for k in range(n)], ece=calibration(every))
        return result

    @torch.no_grad()
    def own_bits(self, prompts, new):
        """Bits per byte that the model itself gives to what it wrote."""
        bits = n = 0
        for p, s in zip(prompts, new):
            x = torch.tensor([p + s], device=self.device)
            lp = F.cross_entropy(self.model.logits(x, CACHED)[0, len(p) - 1:-1], x[0, len(p):], reduction="sum")
            bits, n = bits + float(lp) / math.log(2), n + len(self.tok.decode(s, skip_special_tokens=False).encode())
        return round(bits / max(n, 1), 3)


def distinct(sequences):
    """Share of 4-grams that are distinct within their own text."""
    a = b = 0
    for s in sequences:
        g = [tuple(s[i:i + 4]) for i in range(len(s) - 3)]
        a, b = a + len(set(g)), b + len(g)
    return a / max(b, 1)


def calibration(rounds, bins=10):
    """Expected calibration error of the confidences over the slots that verification reached."""
    pairs = [(c[k], float(k < a)) for a, c in rounds for k in range(min(a + 1, len(c)))]
    conf, hit = np.array(pairs).T
    which = np.minimum((conf * bins).astype(int), bins - 1)
    return round(sum((which == b).mean() * abs(conf[which == b].mean() - hit[which == b].mean())
                     for b in range(bins) if (which == b).any()), 4)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", required=True)
    ap.add_argument("--rows", help="packed rows, for ablations and held-out prompts")
    ap.add_argument("--texts", help="held_out.json, for bits per byte")
    ap.add_argument("--out", required=True)
    ap.add_argument("--only", default="bpb,ablation,tools,think,samples,accept")
    ap.add_argument("--quick", action="store_true")
    a = ap.parse_args()
    q = a.quick
    b = Bench(a.model, "cuda" if torch.cuda.is_available() else "cpu")
    todo = dict(bpb=lambda: b.bits_per_byte(json.load(open(a.texts))), ablation=lambda: b.ablations(a.rows, 2 if q else 24),
                tools=lambda: b.tool_cases(6 if q else 100, 40 if q else 200), think=lambda: b.thinking_closes(4 if q else 60, 30 if q else 160),
                samples=lambda: b.samples(12 if q else 200),
                accept=lambda: {f"T={t}": b.acceptance(a.rows, 2 if q else 16, 16 if q else 128, t) for t in (0, 1)})
    figures = {}
    for name in a.only.split(","):
        figures[name] = todo[name]()
        print(name, json.dumps(figures[name], ensure_ascii=False)[:3000], flush=True)
        json.dump(figures, open(a.out, "w"), indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
