"""Draws the training log.   plot.py --log log.jsonl --out docs/img/mini_training.png"""
import argparse
import json
import os

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--log", required=True)
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    log = [json.loads(line) for line in open(a.log)]
    x = [r["tokens"] / 1e6 for r in log]
    fig, ax = plt.subplots(1, 3, figsize=(15, 4.2))
    ax[0].plot(x, [r["ce"] for r in log], color="black", label="training mix")
    held = [r for r in log if "held" in r]
    for s in held[0]["held"]:
        ax[0].plot([r["tokens"] / 1e6 for r in held], [r["held"][s] for r in held], "o-", ms=3, lw=1, label=f"held out: {s}")
    ax[0].set(ylim=(0, 4.5), ylabel="nats a token", title="loss")
    ax[0].legend(fontsize=8)
    for k in range(5):
        ax[1].plot(x, [r["overlap"][k] for r in log], label=f"slot {k + 1}")
    ax[1].set(ylim=(0.4, 0.75), ylabel="sum of min(p, q)", title="DSpark: chance of acceptance, true prefix")
    ax[1].legend(fontsize=8)
    ax[2].plot(x, [r["kl"] for r in log], label="indexer KL, nats")
    ax[2].plot(x, [r["load"] - 1 for r in log], label="experts: busiest / mean - 1")
    ax[2].plot(x, [r["bce"] - 0.4 for r in log], label="confidence cross-entropy - 0.4")
    ax[2].set(ylim=(0, 0.4), title="indexer, balance, confidence")
    ax[2].legend(fontsize=8)
    for p in ax:
        p.set_xlabel("million tokens")
        p.grid(alpha=0.3)
    fig.tight_layout()
    os.makedirs(os.path.dirname(a.out), exist_ok=True)
    fig.savefig(a.out, dpi=80)


if __name__ == "__main__":
    main()
