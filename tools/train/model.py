"""DeepSeek-V4.1, text only, as a function of its weights: forward pass over whole sequences, and the weights' set-up."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F

import config
from attention import Attention, quantise
from blocks import Lookup, engram, engram_plan, engram_rows, moe
from ops import collapse, collapse_norm, expand, fused_rms, mix, rope_table
from quant import weight_value


@dataclass(frozen=True)
class Numerics:
    """Which roundings happen. dtype: of activations and of weights in products."""
    dtype: torch.dtype = torch.bfloat16
    quant_act: bool = True         # fp8 activations in front of quantised products
    cache: bool = True             # window, compressed and index caches in their formats
    exact: bool = False            # the tie rules of selection and routing, for comparison with other implementations

    def act(self, x):
        return quantise(x) if self.quant_act else x


TRAIN = Numerics()
FLOAT = Numerics(torch.float32, False, False, True)      # fp32 throughout, caches unquantised
CACHED = Numerics(torch.float32, False, True, True)      # fp32, caches in their formats
REFERENCE = Numerics(torch.bfloat16, True, True, True)   # as released


class Weights:
    """The values that the released formats hold, computed once a step from fp32 masters. w(name, layer) is fp32,
    w.cast(name, layer) has the activations' dtype. Stacks are unbound once: its gradient is then one stack as well."""

    def __init__(self, params, inventory, dtype):
        self.full, self.low = {}, {}
        for name, (kind, _) in inventory.items():
            v = weight_value(params[name], kind)
            stacked = name not in config.UNSTACKED and not name.startswith("engram_table")
            self.full[name] = v.unbind(0) if stacked else v
            low = v.to(dtype)
            self.low[name] = low.unbind(0) if stacked else low

    def __call__(self, name, l=None):
        return self.full[name] if l is None else self.full[name][l]

    def cast(self, name, l=None):
        return self.low[name] if l is None else self.low[name][l]


class Model:
    """c: text_config; token_map: int64 [V]. params: {name: fp32 tensor}, one entry per config.inventory(c)."""

    def __init__(self, c, token_map, params, device="cpu"):
        config.check(c)
        self.c, self.device, self.inventory = c, device, config.inventory(c)
        self.token_map = torch.as_tensor(token_map, device=device)
        self.plan = engram_plan(c, int(self.token_map.max()) + 1)
        assert [sum(p) for p in self.plan[0]] == c["engram_num_embeddings"], "config and tokenizer disagree"
        self.params, self.tables = params, {}

    def rope_tables(self, T):
        """{0: plain, 1: YaRN} for positions 0..T-1."""
        if T not in self.tables:
            p = torch.arange(T, device=self.device)
            self.tables[T] = {r: rope_table(self.c, r, p) for r in (0, 1)}
        return self.tables[T]

    def weights(self, num):
        return Weights(self.params, self.inventory, num.dtype)

    def block(self, h, pre, l, w, num, attention, draft=False):
        """One layer. A site never uses its own `pre`: attention collapses with what came in, the experts with the
        attention's, the next layer with the experts'."""
        c, eps = self.c, self.c["rms_norm_eps"]
        preA, postA, CA = mix(h, w("hc_attn_fn", l), w("hc_attn_scale", l), w("hc_attn_base", l), c)
        h = expand(attention(collapse_norm(h, pre, w("attn_norm", l), eps), l), h, postA, CA)
        preF, postF, CF = mix(h, w("hc_ffn_fn", l), w("hc_ffn_scale", l), w("hc_ffn_base", l), c)
        y, count = moe(collapse_norm(h, preA, w("ffn_norm", l), eps), w, l, num, c, draft)
        return expand(y, h, postF, CF), preF, count

    def start(self, ids, w):
        x = Lookup.apply(w.cast("embed"), ids)
        pre = F.one_hot(torch.zeros_like(ids), self.c["hc_mult"]).float()
        return x[..., None, :].expand(*x.shape[:-1], self.c["hc_mult"], -1), pre

    def forward(self, ids, num=TRAIN, w=None, **switch):
        """ids [B,T] (T a multiple of the window) -> dict: hidden [B,T,D] (normed, in front of the head), taps for the
        draft, kl of the indexers, tokens per expert [L,E], and the weights that were used.
        switch: dense (bool tensor), no_engram, window_only, random_selection."""
        c, w = self.c, w or self.weights(num)
        h, pre = self.start(ids, w)
        rows = engram_rows(ids, self.token_map, self.plan, c)
        attention = Attention(c, w, num, self.rope_tables(ids.shape[1]), switch)
        taps, counts = [], []
        for l in range(c["num_hidden_layers"]):
            if l in c["engram_layer_ids"] and not switch.get("no_engram"):
                i = c["engram_layer_ids"].index(l)
                h = engram(h, rows[i], w, i, num, c)
            if l in c["dspark_target_layer_ids"]:
                taps.append(h.float().mean(-2).to(h.dtype))
            h, pre, count = self.block(h, pre, l, w, num, attention)
            counts.append(count)
        attention.close_group()
        hidden = fused_rms(collapse(h, pre), w("norm"), c["rms_norm_eps"])
        return dict(hidden=hidden, taps=torch.cat(taps, -1), kl=attention.kl, counts=torch.stack(counts), weights=w)

    def logits(self, ids, num=FLOAT, **switch):
        """fp32 logits [B,T,V], any T."""
        W, T = self.c["sliding_window"], ids.shape[1]
        out = self.forward(F.pad(ids, (0, -T % W), value=1), num, **switch)
        return out["hidden"][:, :T].float() @ out["weights"]("head").T


def init_params(c, seed=0):
    """fp32 masters. Output projections start small, so that the streams begin as the embedding and layers grow in."""
    g, S, p = torch.Generator().manual_seed(seed), c["hc_mult"], {}
    for name, (kind, shape) in config.inventory(c).items():
        if name.endswith("norm") or name in ("engram_q", "engram_k"):
            p[name] = torch.ones(shape)
        elif name.startswith("hc_") and name.endswith("scale"):
            p[name] = torch.full(shape, 0.5)
        elif name.startswith("hc_") and name.endswith("base"):
            p[name] = mix_base(S).expand(shape).clone()
            for l in range(shape[0]):                     # layers read and write different streams to begin with
                p[name][l, l % S] += 1.0
                p[name][l, S + (l + 1) % S] += 0.5
        elif name in ("attn_sink", "gate_bias", "draft_gate_bias"):
            p[name] = torch.zeros(shape)
        else:
            std = dict(embed=0.5, head=0.02, markov_embed=0.3, markov_head=0.02, confidence=0.01).get(name)
            if name.startswith("engram_table"):
                std = 0.1
            gain = 0.3 if name in ("wo_b", "w2", "shared_w2", "draft_w2") else 0.5 if name.startswith("hc_") else 1.0
            p[name] = torch.randn(shape, generator=g) * (std if std else gain * shape[-1] ** -0.5)
    return p


def mix_base(S):
    """pre about 0.2 a stream, post 1, C near the identity."""
    return torch.cat([torch.full((S,), -1.4), torch.zeros(S), (torch.eye(S) * 4).flatten()])
