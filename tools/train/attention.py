"""CSA2: sliding window plus selected compressed rows, as dense masked attention over a whole sequence at once.

At the trained length a dense product over all compressed rows is cheaper than gathering the selected ones, and it hands the
indexer its target (the attention it selects for) for nothing.
"""
import torch
import torch.nn.functional as F

from ops import fuse, fused_rms, kernels, rms, rope
from quant import fake_comp, fake_fp8, fake_idx


@fuse
def quantise(x):
    """Q_act, in front of every quantised product."""
    return fake_fp8(x)


@fuse
def query(y, cos, sin, heads):
    """[B,T,H*d] -> rotated [B,T,H,d]"""
    return rope(y.unflatten(-1, (heads, -1)), cos[..., None, :], sin[..., None, :])


@fuse
def window_rows(y, weight, cos, sin, eps, q):
    """The shared key-and-value row of every position, in the window cache's format."""
    row = rope(rms(y, weight, eps), cos, sin)
    return fake_fp8(row) if q else row


@fuse
def pool_pairs(kv, gate):
    """Ratio 2: gated mean of tokens 2j and 2j+1, per channel, fp32. [B,T,d] -> [B,T/2,d]"""
    kv, gate = kv.float().unflatten(1, (-1, 2)), gate.float().unflatten(1, (-1, 2))
    return (kv * gate.softmax(2)).sum(2)


@fuse
def cache_row(lat, cos, sin, q):
    row = rope(lat, cos, sin)
    return fake_comp(row) if q else row


@fuse
def index_rotate(y, cos, sin, q):
    y = rope(y, cos, sin)
    return fake_idx(y) if q else y


@fuse
def index_scores(iq, ik, w):
    """iq [B,T,HI,dI], ik [B,J,dI], w [B,T,HI] -> fp32 [B,T,J]: sum over heads of w * relu(query . key)."""
    B, T, HI, _ = iq.shape
    s = (iq.flatten(1, 2) @ ik.transpose(1, 2)).view(B, T, HI, -1)
    return (F.relu(s.float()) * w.float()[..., None]).sum(2)


@fuse
def attend(q, kv, rows, keep, sink, W):
    """One softmax over the window and the kept compressed rows, with a sink in the denominator.

    q [B,T,H,d], kv [B,T,d], rows [B,J,d] or None, keep bool [B,T,J], sink [H]; T a multiple of W.
    Returns o [B,T,H,d] and the probability mass of every row summed over heads [B,T,J] (or None)."""
    B, T, H, d = q.shape
    n, dt = T // W, q.dtype
    past = F.pad(kv, (0, 0, W, 0))
    kw = torch.cat([past[:, :T].unflatten(1, (n, W)), kv.unflatten(1, (n, W))], 2)             # [B,n,2W,d]
    sw = (q.reshape(B, n, W * H, d) @ kw.transpose(2, 3)).float().view(B, n, W, H, 2 * W) * d**-0.5
    t, j = torch.arange(W, device=q.device)[:, None], torch.arange(2 * W, device=q.device)
    near = (j > t) & (j <= t + W)                                                              # the last W positions
    real = (torch.arange(n, device=q.device)[:, None] > 0) | (j >= W)                          # before the sequence
    sw = sw.masked_fill(~(near & real[:, None])[:, :, None], -torch.inf).view(B, T, H, 2 * W)
    top = torch.maximum(sw.amax(-1), sink).detach()
    if rows is not None:
        sc = (q.reshape(B, T * H, d) @ rows.transpose(1, 2)).float().view(B, T, H, -1) * d**-0.5
        sc = sc.masked_fill(~keep[:, :, None], -torch.inf)
        top = torch.maximum(top, sc.amax(-1)).detach()
    pw = torch.exp(sw - top[..., None])
    den = pw.sum(-1) + torch.exp(sink - top)
    o = (pw.to(dt).view(B, n, W * H, 2 * W) @ kw).view(B, T, H, d).float()
    mass = None
    if rows is not None:
        pc = torch.exp(sc - top[..., None])
        den = den + pc.sum(-1)
        o = o + (pc.to(dt).view(B, T * H, -1) @ rows).view(B, T, H, d).float()
        mass = (pc / den[..., None]).sum(2).detach()
    return (o / den[..., None]).to(dt), mass


@fuse
def unrotate(o, cos, sin):
    return rope(o, cos[..., None, :], -sin[..., None, :])


@fuse
def index_kl(scores, mass, keep):
    """KL from the attention that the selection served to the indexer's softmax, over the selected rows; per query."""
    some = keep.any(-1)
    target = mass.masked_fill(~keep, 0) / mass.masked_fill(~keep, 0).sum(-1, keepdim=True).clamp(min=1e-9)
    logq = torch.log_softmax(scores.masked_fill(~keep, -1e30), -1)
    kl = (target * (target.clamp(min=1e-9).log() - logq)).masked_fill(~keep, 0).sum(-1)
    return (kl * some).sum() / some.sum().clamp(min=1)


# ---- selection -----------------------------------------------------------------------------------------------------
def best(scores, k, exact):
    """bool mask of the k best per row. `exact`: ties go to the lower index; else a tie at the threshold keeps both."""
    if k >= scores.shape[-1]:
        return scores > -torch.inf
    if exact:
        order = scores.sort(dim=-1, descending=True, stable=True).indices[..., :k]
        return torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, order, True) & (scores > -torch.inf)
    last = kernels.kth_largest(scores, k) if kernels is not None and scores.is_cuda else \
        scores.topk(k, -1, sorted=False).values.amin(-1, keepdim=True)
    return (scores >= last) & (scores > -torch.inf)


def candidates(scores, visible, c, exact):
    """Rows of the best blocks; the block of the newest visible row always stays. scores hold -inf where invisible."""
    n, J = c["candidate_block_size"], scores.shape[-1]
    b = F.pad(scores, (0, -J % n), value=-torch.inf).unflatten(-1, (-1, n)).amax(-1)
    newest = (visible.sum(-1) - 1).div(n, rounding_mode="floor")
    here = torch.arange(b.shape[-1], device=b.device) == newest[..., None]
    return best(b.masked_fill(here, torch.inf), c["candidate_topk_blocks"], exact).repeat_interleave(n, -1)[..., :J]


class Attention:
    """The attention of every layer; holds what layers hand down within one forward: rows, index keys, selection."""

    def __init__(self, c, w, num, tables, switch):
        self.c, self.w, self.num, self.tables, self.switch = c, w, num, tables, switch
        self.rows = self.keys = self.keep = self.cand = self.scores = self.mass = None
        self.kl = []

    def compress(self, x, l):
        c, w, i, r = self.c, self.w, self.c["kv_source_layer_ids"].index(l), self.c["compress_ratios"][l]
        eps, (cos, sin) = c["rms_norm_eps"], self.tables[1]
        lat = F.linear(x, w.cast("comp_wkv", i))
        if r > 1:
            lat = pool_pairs(lat, F.linear(x, w.cast("comp_wgate", i))).to(x.dtype)
        cos, sin = cos[::r], sin[::r]                                       # a row sits at its first token
        lat = fused_rms(lat, w("comp_norm", i), eps)                        # [B,J,d]
        key = fused_rms(F.linear(lat.detach(), w.cast("idx_wk", i)), w("idx_k_norm", i), eps)
        self.keys = index_rotate(key, cos, sin, self.num.cache)             # from the latent before its rotation
        self.rows = cache_row(lat, cos, sin, self.num.cache)

    def select(self, x, qr, l):
        """Index scores of this layer and the rows it keeps. The indexer sees detached inputs: only its KL trains it."""
        c, w, i = self.c, self.w, self.c["index_source_layer_ids"].index(l)
        HI, dI, (cos, sin) = c["index_n_heads"], c["index_head_dim"], self.tables[1]
        iq = F.linear(qr.detach(), w.cast("idx_wq_b", i)).unflatten(-1, (HI, dI))
        iq = index_rotate(iq, cos[..., None, :], sin[..., None, :], self.num.cache)
        weight = F.linear(x.detach(), w.cast("idx_weights", i)) * (HI * dI) ** -0.5
        self.close_group()
        self.scores = index_scores(iq, self.keys, weight)
        T, J = self.scores.shape[1:]
        p, j = torch.arange(T, device=x.device)[:, None], torch.arange(J, device=x.device)
        visible = (j < (p + 1) // c["compress_ratios"][l]).expand_as(self.scores)
        s = self.scores.detach().masked_fill(~visible, -torch.inf)
        if self.switch.get("random_selection"):
            s = torch.rand(s.shape, device=s.device).masked_fill(~visible, -torch.inf)
        src, exact = c["candidate_source_layer_id"], self.num.exact
        if l == src:
            self.cand = candidates(s, visible, c, exact)
        elif 0 <= src < l:
            s = s.masked_fill(~self.cand, -torch.inf)
        self.keep = best(s, c["index_topk"], exact)
        if self.switch.get("dense") is not None:                            # warm-up: the indexer learns, nobody obeys it
            self.keep = self.keep | (visible & self.switch["dense"])
        if self.switch.get("window_only"):
            self.keep = torch.zeros_like(self.keep)

    def close_group(self):
        """Ends the span of layers that shared a selection: their summed attention is the indexer's target."""
        if self.mass is not None and self.scores.requires_grad:
            self.kl.append(index_kl(self.scores, self.mass, self.keep))
        self.mass = None

    def __call__(self, x, l):
        """x [B,T,D] -> [B,T,D]"""
        c, w, r, W = self.c, self.w, self.c["compress_ratios"][l], self.c["sliding_window"]
        qr, q, kv, table = self.qkv(x, l, r)
        rows = None
        if r:
            if l in c["kv_source_layer_ids"]:
                self.compress(x, l)
            if l in c["index_source_layer_ids"]:
                self.select(x, qr, l)
            rows = self.rows
        o, mass = attend(q, kv, rows, self.keep if r else None, w("attn_sink", l), W)
        if mass is not None:
            self.mass = mass if self.mass is None else self.mass + mass
        return self.out(o, l, table)

    def qkv(self, x, l, r, table=None):
        c, w, eps = self.c, self.w, self.c["rms_norm_eps"]
        cos, sin = table = table or self.tables[min(r, 1)]
        both = F.linear(self.num.act(x), torch.cat([w.cast("wq_a", l), w.cast("wkv", l)]))
        qa, ya = both.split([c["q_lora_rank"], c["head_dim"]], -1)
        qr = self.num.act(fused_rms(qa, w("q_norm", l), eps))
        q = query(F.linear(qr, w.cast("wq_b", l)), cos, sin, c["num_attention_heads"])
        return qr, q, window_rows(ya, w("kv_norm", l), cos, sin, eps, self.num.cache), table

    def out(self, o, l, table):
        c, w, G = self.c, self.w, self.c["o_groups"]
        o = unrotate(o, *table).flatten(-2).unflatten(-1, (G, -1))                             # [B,T,G,H*d/G]
        z = torch.einsum("...gi,goi->...go", o, w.cast("wo_a", l).unflatten(0, (G, -1)))
        return F.linear(self.num.act(z.flatten(-2)), w.cast("wo_b", l))
