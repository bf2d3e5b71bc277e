"""SmolLM2-135M-Instruct from its GGUF file: samples text in large batches, and scores text in bits per byte.

    smollm.py sample --gguf F --seed 1 --out DIR/ids --seconds 120
    smollm.py score  --gguf F --texts held_out.json --out scores.json
"""
import argparse
import json
import lzma
import math
import multiprocessing
import random
import struct
import time

import numpy as np
import torch
import torch.nn.functional as F

import synth

HEADS, KV, D_HEAD, LAYERS, EPS, THETA = 9, 3, 64, 30, 1e-5, 100000.0


PARTS = 6                       # files that the samples are spread over, compressed side by side


def pack(path, ids):
    """uint16 [n, length], preceded by its length; settings for 16-bit items."""
    how = [dict(id=lzma.FILTER_LZMA2, preset=6, lc=0, lp=1, pb=1)]
    with lzma.open(path, "wb", filters=how) as f:
        f.write(np.uint32(ids.shape[1]).tobytes() + np.ascontiguousarray(ids).tobytes())


def unpack(path):
    raw = lzma.open(path).read()
    return np.frombuffer(raw[4:], np.uint16).reshape(-1, int(np.frombuffer(raw[:4], np.uint32)[0]))


# ---- file ----------------------------------------------------------------------------------------------------------
def read_gguf(path):
    """(metadata, {name: fp32 tensor [out, in]}) for the three tensor types the file uses: F32, Q4_1, Q8_0."""
    d, o = memoryview(open(path, "rb").read()), 24
    plain = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def take(fmt):
        nonlocal o
        v, = struct.unpack_from("<" + fmt, d, o)
        o += struct.calcsize("<" + fmt)
        return v

    def text():
        nonlocal o
        n = take("Q")
        o += n
        return bytes(d[o - n:o]).decode()

    def value(t):
        if t == 8:
            return text()
        if t == 9:
            et, n = take("I"), take("Q")
            return [value(et) for _ in range(n)]
        return take(plain[t])

    n_tensors, n_keys = struct.unpack_from("<QQ", d, 8)
    meta, infos, out = {}, [], {}
    for _ in range(n_keys):
        k = text()
        meta[k] = value(take("I"))
    for _ in range(n_tensors):
        name, nd = text(), take("I")
        infos.append((name, [take("Q") for _ in range(nd)][::-1], take("I"), take("Q")))
    base = (o + 31) // 32 * 32
    for name, shape, kind, off in infos:
        n, start = math.prod(shape), base + off
        if kind == 0:
            a = np.frombuffer(d, "<f4", n, start).copy()
        elif kind == 8:
            b = np.frombuffer(d, np.dtype([("d", "<f2"), ("q", "i1", 32)]), n // 32, start)
            a = b["q"] * b["d"].astype("f4")[:, None]
        elif kind == 3:
            b = np.frombuffer(d, np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)]), n // 32, start)
            q = np.concatenate([b["q"] & 15, b["q"] >> 4], 1)
            a = q * b["d"].astype("f4")[:, None] + b["m"].astype("f4")[:, None]
        else:
            raise ValueError(f"{path}: tensor {name} has type {kind}")
        out[name] = torch.from_numpy(np.ascontiguousarray(a, "f4").reshape(shape))
    return meta, out


def tokenizer(meta):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    tokens = meta["tokenizer.ggml.tokens"]
    t = Tokenizer(models.BPE({s: i for i, s in enumerate(tokens)},
                             [tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]]))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s, k in
                          zip(tokens, meta["tokenizer.ggml.token_type"]) if k == 3])
    return t


# ---- model ---------------------------------------------------------------------------------------------------------
class SmolLM2:
    def __init__(self, tensors, device, dtype):
        self.w = {k: v.to(device, dtype) for k, v in tensors.items()}
        self.freq = THETA ** (-torch.arange(0, D_HEAD, 2, device=device).float() / D_HEAD)

    def rms(self, x, name):
        return F.rms_norm(x.float(), (x.shape[-1],), self.w[name].float(), EPS).to(x.dtype)

    def rope(self, x, pos):
        """The file's q and k are stored for rotation of adjacent pairs. x [B,T,heads,64], pos [T]"""
        phi = pos[:, None].float() * self.freq
        cos, sin = phi.cos()[:, None], phi.sin()[:, None]
        a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).to(x.dtype)

    def forward(self, ids, pos, attend):
        """ids [B,T] -> logits [B,T,V]; attend(layer, q, k, v) -> [B,T,576]"""
        w, (B, T) = self.w, ids.shape
        x = w["token_embd.weight"][ids]
        for l in range(LAYERS):
            p = f"blk.{l}."
            y = self.rms(x, p + "attn_norm.weight")
            q = self.rope(F.linear(y, w[p + "attn_q.weight"]).view(B, T, HEADS, D_HEAD), pos)
            k = self.rope(F.linear(y, w[p + "attn_k.weight"]).view(B, T, KV, D_HEAD), pos)
            v = F.linear(y, w[p + "attn_v.weight"]).view(B, T, KV, D_HEAD)
            x = x + F.linear(attend(l, q, k, v), w[p + "attn_output.weight"])
            y = self.rms(x, p + "ffn_norm.weight")
            y = F.silu(F.linear(y, w[p + "ffn_gate.weight"])) * F.linear(y, w[p + "ffn_up.weight"])
            x = x + F.linear(y, w[p + "ffn_down.weight"])
        return F.linear(self.rms(x, "output_norm.weight"), w["token_embd.weight"])

    def score(self, ids):
        """Sum of -log2 p over tokens 1.. of every row; ids [B,T], rows padded with -1."""
        def attend(l, q, k, v):
            q, k, v = (t.transpose(1, 2) for t in (q, k.repeat_interleave(3, 2), v.repeat_interleave(3, 2)))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        pos = torch.arange(ids.shape[1], device=ids.device)
        logits = self.forward(ids.clamp(min=0), pos, attend)[:, :-1].float()
        nll = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], ignore_index=-1, reduction="none")
        return nll.sum(1) / math.log(2)


def decode_kernel():
    """One query against a cache whose length is read from device memory, so that one captured graph serves all steps."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(Q, K, V, O, POS, T_MAX: tl.constexpr, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        b, g = pid // 3, pid % 3
        h, c, j = tl.arange(0, 16), tl.arange(0, 64), tl.arange(0, BLOCK)
        qoff = b * 576 + (g * 3 + h)[:, None] * 64 + c[None, :]
        q = tl.load(Q + qoff, mask=(h < 3)[:, None], other=0.0)
        pos = tl.load(POS)
        base = pid.to(tl.int64) * T_MAX * 64
        m = tl.full((16,), -1e30, tl.float32)
        den = tl.zeros((16,), tl.float32)
        acc = tl.zeros((16, 64), tl.float32)
        for t0 in range(0, pos + 1, BLOCK):
            live = t0 + j <= pos
            off = base + (t0 + j)[:, None] * 64 + c[None, :]
            k = tl.load(K + off, mask=live[:, None], other=0.0)
            v = tl.load(V + off, mask=live[:, None], other=0.0)
            s = tl.where(live[None, :], tl.dot(q, tl.trans(k)) * 0.125, -1e30)
            top = tl.maximum(m, tl.max(s, axis=1))
            p, old = tl.exp(s - top[:, None]), tl.exp(m - top)
            den = den * old + tl.sum(p, axis=1)
            acc = acc * old[:, None] + tl.dot(p.to(v.dtype), v)
            m = top
        tl.store(O + qoff, (acc / den[:, None]).to(O.dtype.element_ty), mask=(h < 3)[:, None])

    return kernel


class Sampler:
    """B sequences of T tokens; a sequence starts with its prompt and then runs on, through as many turns as fit."""

    def __init__(self, model, B, T, temperature=0.8, min_p=0.06):
        dev, dt = model.freq.device, torch.bfloat16
        self.model, self.T, self.temperature, self.min_p = model, T, temperature, min_p
        self.K, self.V = (torch.zeros(LAYERS, B, KV, T, D_HEAD, device=dev, dtype=dt) for _ in "kv")
        self.out = torch.zeros(B, T, dtype=torch.long, device=dev)
        self.length, self.pos = torch.zeros(B, dtype=torch.long, device=dev), torch.zeros(1, dtype=torch.long, device=dev)
        self.kernel, self.graph = decode_kernel(), None

    def attend(self, l, q, k, v):
        B = q.shape[0]
        self.K[l].index_copy_(2, self.pos, k.transpose(1, 2))
        self.V[l].index_copy_(2, self.pos, v.transpose(1, 2))
        o = torch.empty_like(q)
        self.kernel[(B * KV,)](q, self.K[l], self.V[l], o, self.pos, T_MAX=self.T, BLOCK=64, num_warps=2)
        return o.flatten(2)

    def step(self):
        token = self.out.index_select(1, self.pos)
        logits = self.model.forward(token, self.pos, self.attend)[:, 0].float()
        p = torch.softmax(logits / self.temperature, -1)
        p = torch.where(p >= self.min_p * p.amax(-1, keepdim=True), p, 0)
        pick = (p / torch.empty_like(p).exponential_()).argmax(-1, keepdim=True)
        self.pos += 1
        known = self.pos < self.length
        self.out.index_copy_(1, self.pos, torch.where(known[:, None], self.out.index_select(1, self.pos), pick))

    @torch.no_grad()
    def run(self, prompts):
        """prompts: B token lists -> int64 [B,T]"""
        self.out.zero_()
        n = torch.tensor([len(p) for p in prompts])
        flat = torch.zeros_like(self.out, device="cpu")
        for i, p in enumerate(prompts):
            flat[i, :len(p)] = torch.tensor(p)
        self.out.copy_(flat)
        self.length.copy_(n)
        self.pos.zero_()
        if self.graph is None:
            for _ in range(2):
                self.step()
            self.pos.zero_()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.step()
            self.out.copy_(flat)
            self.pos.zero_()
        for _ in range(self.T - 1):
            self.graph.replay()
        return self.out.cpu()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("mode", choices=["sample", "score"])
    ap.add_argument("--gguf", required=True)
    ap.add_argument("--seed", type=int, default=1, help="of the prompts and the draws")
    ap.add_argument("--texts")
    ap.add_argument("--out", required=True)
    ap.add_argument("--seconds", type=float, default=120)
    ap.add_argument("--batch", type=int, default=4096)
    ap.add_argument("--length", type=int, default=512)
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    meta, tensors = read_gguf(a.gguf)
    tok, model = tokenizer(meta), SmolLM2(tensors, dev, torch.bfloat16 if dev == "cuda" else torch.float32)
    if a.mode == "score":
        result = {}
        for source, texts in json.load(open(a.texts)).items():
            bits = bytes_ = 0
            with torch.no_grad():
                for i in range(0, len(texts), 16):
                    part = texts[i:i + 16]
                    ids = [[0] + tok.encode(t).ids for t in part]             # 0 is <|endoftext|>, the separator in training
                    width = max(map(len, ids))
                    ids = torch.tensor([r + [-1] * (width - len(r)) for r in ids], device=dev)
                    bits += float(model.score(ids).sum())
                    bytes_ += sum(len(t.encode()) for t in part)
            result[source] = bits / bytes_
            print(source, round(result[source], 4), flush=True)
        json.dump(result, open(a.out, "w"), indent=1)
        return
    sampler, start, runs, rng = Sampler(model, a.batch, a.length), time.time(), [], random.Random(a.seed)
    while time.time() - start < a.seconds:
        prompts = tok.encode_batch([synth.teacher_prompt(rng) for _ in range(a.batch)])
        t0 = time.time()
        runs.append(sampler.run([p.ids for p in prompts]).to(torch.uint16))
        print(f"batch {len(runs)}: {a.batch * a.length / (time.time() - t0):.0f} tokens/s", flush=True)
        if len(runs) == 1:
            for i in range(0, a.batch, a.batch // 6):
                print("----\n" + tok.decode(runs[0][i].tolist(), skip_special_tokens=False)[:900], flush=True)
    parts = np.array_split(torch.cat(runs).numpy(), PARTS)
    with multiprocessing.Pool(PARTS) as pool:
        pool.starmap(pack, [(f"{a.out}.{i}.xz", p) for i, p in enumerate(parts)])


if __name__ == "__main__":
    main()
