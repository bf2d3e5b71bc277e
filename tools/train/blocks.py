"""Mixture of experts and Engram."""
import numpy as np
import torch
import torch.nn.functional as F

from ops import fuse
from quant import fake_fp8


# ---- mixture of experts --------------------------------------------------------------------------------------------
@fuse
def route(logits, bias, k, scale, exact):
    """Weight of every expert [.., E], zero where not chosen. The bias steers the choice and never the weight."""
    score = torch.sqrt(F.softplus(logits.float()))
    biased = (score + bias).detach()
    if exact:                                                                # ties to the lower id
        pick = torch.zeros_like(biased).scatter_(-1, biased.sort(dim=-1, descending=True, stable=True).indices[..., :k], 1)
    else:                                                                    # rank by counting: E is small
        pick = ((biased[..., None, :] > biased[..., None]).sum(-1) < k).float()
    chosen = score * pick
    return chosen / (chosen.sum(-1, keepdim=True) + 1e-20) * scale, pick.flatten(0, -2).sum(0)


@fuse
def expert_hidden(gu, weight, limit, q):
    """gu [.., 2, E, F] (gate, up), weight [.., E] -> [.., E, F]. The routing weight enters before the last product."""
    g, u = gu.float().unbind(-3)
    a = F.silu(g.clamp(max=limit)) * u.clamp(-limit, limit) * weight[..., None]
    a = a.to(gu.dtype)
    return fake_fp8(a) if q else a


def moe(x, w, l, num, c, draft=False):
    """Every expert is computed and the unchosen ones multiplied by zero: at this width that is one large product and
    costs less than sorting tokens. The shared expert rides along with weight 1. Returns (y, tokens per expert)."""
    part, i = ("draft_", l - c["num_hidden_layers"]) if draft else ("", l)
    k = c["dspark_num_experts_per_tok" if draft else "num_experts_per_tok"]
    weight, count = route(F.linear(x, w.cast(part + "gate", i)), w(part + "gate_bias", i), k,
                          c["routed_scaling_factor"], num.exact)
    weight = F.pad(weight, (0, 1), value=1.0)
    up = torch.cat([w.cast(part + "w1", i).flatten(0, 1), w.cast("shared_w1", l),
                    w.cast(part + "w3", i).flatten(0, 1), w.cast("shared_w3", l)])
    gu = F.linear(num.act(x), up).unflatten(-1, (2, weight.shape[-1], -1))
    a = expert_hidden(gu, weight, c["swiglu_limit"], num.quant_act)
    down = torch.cat([w.cast(part + "w2", i).transpose(0, 1).flatten(1), w.cast("shared_w2", l)], 1)
    return F.linear(a.flatten(-2), down), count


# ---- Engram --------------------------------------------------------------------------------------------------------
def engram_plan(c, map_size):
    """(primes [layers][columns], multipliers [layers][n]) by the release's rules: primes from engram_vocab_size upward,
    never used twice in the model; odd multipliers from NumPy's generator seeded per layer."""
    prime = lambda n: n > 1 and all(n % q for q in range(2, int(n**.5) + 1))
    seen, primes, mult = set(), [], []
    bound = max(1, (2**63 - 1) // map_size // 2)
    for layer in c["engram_layer_ids"]:
        row = []
        for _ in range(c["engram_max_ngram_size"] - 1):
            cur = c["engram_vocab_size"] - 1
            for _ in range(c["engram_n_heads"]):
                cur += 1
                while not prime(cur) or cur in seen:
                    cur += 1
                seen.add(cur)
                row.append(cur)
        primes.append(row)
        rng = np.random.default_rng(10007 * layer)
        mult.append([int(m) * 2 + 1 for m in rng.integers(0, bound, c["engram_max_ngram_size"], np.int64)])
    return primes, mult


def engram_rows(ids, token_map, plan, c):
    """Table rows of every token [B,T] -> per layer [B,T,columns]. Text only: nothing is blocked but the start."""
    n, heads, t = c["engram_max_ngram_size"], c["engram_n_heads"], token_map[ids]
    pad = token_map[c["engram_pad_token_id"]]
    terms = [t] + [torch.cat([pad.expand(t[:, :i].shape), t[:, :-i]], 1) for i in range(1, n)]
    out = []
    for primes, mult in zip(*plan):
        r, cols, offset = terms[0] * mult[0], [], 0
        for i in range(1, n):
            r = r ^ (terms[i] * mult[i])
            for prime in primes[len(cols):len(cols) + heads]:
                cols.append(r % prime + offset)
                offset += prime
        out.append(torch.stack(cols, -1))
    return out


class Lookup(torch.autograd.Function):
    """Row gather whose gradient is one atomic scatter-add: the framework's own sorts the ids first and is slower here."""
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = table.shape[0]
        return table[ids]

    @staticmethod
    def backward(ctx, g):
        ids, = ctx.saved_tensors
        out = torch.zeros(ctx.rows, g.shape[-1], device=g.device, dtype=torch.float32)
        return out.index_add_(0, ids.flatten(), g.flatten(0, -2).float()).to(g.dtype), None


@fuse
def engram_gate(h, kv, qw, kw, eps):
    """h [..,S,D], kv [..,(S+1)D]: a key per stream and one value; the gate is a signed square root under a sigmoid."""
    S, D = h.shape[-2:]
    hf, key, value = h.float(), kv[..., :S * D].float().unflatten(-1, (S, D)), kv[..., None, S * D:].float()
    scale = torch.rsqrt(hf.square().mean(-1) + eps) * torch.rsqrt(key.square().mean(-1) + eps) * D**-0.5
    dot = (hf * (qw * kw) * key).sum(-1) * scale
    gate = torch.sigmoid(torch.copysign(torch.sqrt(dot.abs().clamp(min=1e-6)), dot))
    return (hf + gate[..., None] * value).to(h.dtype)


def engram(h, rows, w, i, num, c):
    e = Lookup.apply(w.cast(f"engram_table{i}"), rows).flatten(-2)
    kv = F.linear(num.act(e), w.cast("engram_wkv", i))
    return engram_gate(h, kv, w("engram_q", i), w("engram_k", i), c["rms_norm_eps"])
