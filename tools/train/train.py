"""Trains Gannet-mini on one GPU, or a few steps of a tiny one on a CPU.

    train.py --data DIR --out DIR --seconds 540 --total 1100 [--resume STATE]

DIR holds what data.py packed: rows-<source>.npy, held-<source>.npy, mix.json, token_map.npy, config.json. The learning rate
follows the share of `--total` seconds of stepping that has passed, so a run that is cut into calls anneals to its end.
"""
import argparse
import glob
import json
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

import config
import dspark
import export
from model import Model, TRAIN, init_params
from ops import fuse
from optim import Optimiser

PAD = 2
WEIGHT = dict(kl=0.2, draft=0.5, confidence=0.2)


@fuse
def lm_loss(hidden, head, targets):
    logits = (hidden @ head.to(hidden.dtype).T).float()
    return F.cross_entropy(logits, targets, ignore_index=PAD)


class Data:
    """Packed rows [n,T+1] of all sources in one table, and an order of rows that depends on the step alone."""

    def __init__(self, folder, batch, device):
        self.mix = json.load(open(f"{folder}/mix.json"))
        parts, self.span, at = [], {}, 0
        for source in self.mix:
            rows = np.load(f"{folder}/rows-{source}.npy")
            self.span[source] = (at, len(rows))
            parts.append(rows)
            at += len(rows)
        self.rows = torch.from_numpy(np.concatenate(parts).astype(np.int32)).to(device)
        self.held = {s: torch.from_numpy(np.load(f"{folder}/held-{s}.npy").astype(np.int64)).to(device) for s in self.mix}
        self.batch, total = batch, sum(self.mix.values())
        # Smallest-lag-first interleaving: every batch has the sources in their shares, to one row.
        self.share, self.perm = {s: v / total for s, v in self.mix.items()}, {}
        self.given = dict.fromkeys(self.mix, 0)

    def row(self, source):
        at, n = self.span[source]
        epoch, i = divmod(self.given[source], n)
        if (source, epoch) not in self.perm:
            self.perm = {k: v for k, v in self.perm.items() if k[0] != source}
            self.perm[source, epoch] = np.random.default_rng([epoch, n]).permutation(n)
        self.given[source] += 1
        return at + int(self.perm[source, epoch][i])

    def next(self):
        out = []
        for _ in range(self.batch):
            done = sum(self.given.values()) + 1
            out.append(self.row(min(self.mix, key=lambda s: self.given[s] - self.share[s] * done)))
        return torch.tensor(out)

    def epochs(self):
        return {s: round(self.given[s] / self.span[s][1], 2) for s in self.mix}


class Trainer:
    def __init__(self, c, token_map, params, data, device):
        self.c, self.data, self.device = c, data, device
        self.params = {k: v.to(device).requires_grad_(not k.endswith("gate_bias")) for k, v in params.items()}
        self.model = Model(c, torch.as_tensor(token_map, device=device), self.params, device)
        self.opt = Optimiser(self.params)
        self.index = torch.zeros(data.batch, dtype=torch.long, device=device)
        self.offset = torch.ones((), dtype=torch.long, device=device)
        self.dense = torch.ones((), dtype=torch.bool, device=device)
        self.bias_rate = torch.zeros((), device=device)
        self.graph, self.log, self.step_no, self.seconds = None, None, 0, 0.0

    def losses(self, rows):
        ids, targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
        out = self.model.forward(ids, TRAIN, dense=self.dense)
        ce = lm_loss(out["hidden"].flatten(0, 1), out["weights"]("head"), targets.flatten())
        kl = torch.stack(out["kl"])
        stride, T = 16, ids.shape[1]
        anchors = (self.offset + stride * torch.arange(T // stride - 1, device=self.device)).expand(len(ids), -1)
        draft, bce, overlap, draft_counts = dspark.training_loss(self.model, ids, out, anchors, TRAIN)
        return ce, kl, draft, bce, overlap, out["counts"], draft_counts

    def step(self):
        for p in self.params.values():
            p.grad = None
        ce, kl, draft, bce, overlap, counts, draft_counts = self.losses(self.data.rows[self.index].long())
        (ce + WEIGHT["kl"] * kl.sum() + WEIGHT["draft"] * draft + WEIGHT["confidence"] * bce).backward()
        norm = self.opt.step()
        with torch.no_grad():                                        # experts with more than their share become dearer
            for name, n in (("gate_bias", counts), ("draft_gate_bias", draft_counts)):
                self.params[name].add_(self.bias_rate * torch.sign(n.mean(-1, keepdim=True) - n))
        load = (counts.amax(-1) / counts.mean(-1)).mean()
        return torch.cat([torch.stack([ce, kl.mean(), draft, bce, norm, load]).detach(), overlap])

    def capture(self):
        """Records one step as a graph: at this width a step is thousands of small kernels and launching them costs
        more than running them."""
        self.opt.set_lr(0.0)
        self.index.copy_(torch.arange(self.data.batch))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.log = self.step()

    def run_step(self, lr, bias_rate):
        self.index.copy_(self.data.next())
        self.offset.fill_(1 + (self.step_no * 7) % 16)
        self.opt.set_lr(lr)
        self.bias_rate.fill_(bias_rate)
        if self.graph is not None:
            self.graph.replay()
        else:
            self.log = self.step()
        self.step_no += 1
        return self.log

    def evaluate(self, batches=1):
        """Held-out loss in nats a token by source, on the training path (so that nothing new is compiled)."""
        out, B = {}, self.data.batch
        for source, held in self.data.held.items():
            if len(held) >= B:
                ce = [self.losses(held[i * B:(i + 1) * B])[0].item() for i in range(min(batches, len(held) // B))]
                out[source] = round(sum(ce) / len(ce), 4)
        return out

    def save(self, path, full):
        state = dict(config=self.c, params={k: p.detach().cpu() for k, p in self.params.items()}, step=self.step_no,
                     seconds=self.seconds, given=self.data.given)
        if full:
            state["opt"] = self.opt.state()
        torch.save(state, path)

    def save_pieces(self, folder, limit=15 << 20):
        """bf16 weights in files below the transfer limit, for a resume on another machine."""
        pieces, run = [{}], 0
        for k, p in self.params.items():
            n = p.numel() * 2
            if run + n > limit:
                pieces.append({})
                run = 0
            pieces[-1][k], run = p.detach().to(torch.bfloat16).cpu(), run + n
        for i, piece in enumerate(pieces):
            torch.save(dict(config=self.c, params=piece, step=self.step_no, seconds=self.seconds, given=self.data.given),
                       f"{folder}/piece-{i}.pt")

    def load(self, paths):
        """A full state, or all bf16 pieces (then the optimiser starts afresh behind a short warm-up)."""
        with torch.no_grad():
            for path in paths:
                s = torch.load(path, map_location=self.device, weights_only=True)
                for k, v in s["params"].items():
                    self.params[k].copy_(v)
        self.step_no, self.seconds, self.data.given = s["step"], s["seconds"], s["given"]
        if "opt" in s:
            self.opt.load(s["opt"])
        return "opt" in s


def schedule(share, peak, since_start, warmup):
    """Constant, then linear to zero over the last 60 %; warm-up by steps since the optimiser was empty."""
    return peak * min(1.0, (since_start + 1) / warmup) * min(1.0, max(0.0, (1 - share) / 0.6))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--state", default="/tmp/gannet-mini-state.pt")
    ap.add_argument("--resume", nargs="*", default=[])
    ap.add_argument("--seconds", type=float, default=60)
    ap.add_argument("--total", type=float, default=1100)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--dense", type=float, default=0.12, help="share of the run in which selection is only learned")
    ap.add_argument("--eval-every", type=float, default=120)
    ap.add_argument("--eager", action="store_true")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    fuse.on = device == "cuda" and not a.eager
    torch.backends.cuda.matmul.allow_tf32 = True
    c, data = config.load(f"{a.data}/config.json"), Data(a.data, a.batch, device)
    t = Trainer(c, np.load(f"{a.data}/token_map.npy"), init_params(c), data, device)
    resumed = t.load(sorted(sum(map(glob.glob, a.resume), []))) if a.resume else False
    began = t.step_no if not resumed else -10**9
    start = time.time()
    if device == "cuda":
        t.capture()
    n, b = config.size(c)
    print(f"{n} parameters, {b / 1e6:.2f} MB; ready after {time.time() - start:.0f} s; "
          f"{torch.cuda.max_memory_allocated() >> 30 if device == 'cuda' else 0} GiB", flush=True)
    out, pending, mark, next_eval = open(f"{a.out}/log.jsonl", "a"), [], time.time(), a.eval_every
    budget, spent, tokens = a.seconds, 0.0, a.batch * (data.rows.shape[1] - 1)
    while spent < budget:
        share = min(1.0, (t.seconds) / a.total)
        t.dense.fill_(share < a.dense)
        lr = schedule(share, a.lr, t.step_no - began, 100)
        pending.append(t.run_step(lr, 2e-3 * (1 - share)).clone())
        if len(pending) == 50:
            m = torch.stack(pending).mean(0).tolist()                # the only synchronisation of the loop
            now = time.time()
            rec = dict(step=t.step_no, tokens=t.step_no * tokens, lr=lr, ce=m[0], kl=m[1], draft=m[2], bce=m[3],
                       norm=m[4], load=m[5], overlap=m[6:], tokens_s=50 * tokens / (now - mark))
            if not math.isfinite(m[0]):
                raise SystemExit(f"loss is {m[0]} at step {t.step_no}")
            spent, t.seconds, mark, pending = spent + now - mark, t.seconds + now - mark, now, []
            if spent > next_eval or spent >= budget:
                rec["held"], next_eval = t.evaluate(), next_eval + a.eval_every
                t.save(a.state, full=True)
                mark = time.time()
            out.write(json.dumps(rec) + "\n")
            out.flush()
            if t.step_no % 250 == 0 or "held" in rec:
                print(json.dumps({k: ([round(x, 3) for x in v] if isinstance(v, list) else round(v, 4) if isinstance(v, float)
                                       else v) for k, v in rec.items()}), flush=True)
    print("epochs", data.epochs(), flush=True)
    t.save(a.state, full=True)
    t.save_pieces(a.out)
    image = json.load(open(f"{a.data}/config.json"))["image_token_id"]
    export.write(c, {k: p.detach().cpu() for k, p in t.params.items()}, f"{a.out}/model", image_token_id=image)


if __name__ == "__main__":
    main()
