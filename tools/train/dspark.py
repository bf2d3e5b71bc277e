"""DSpark: draft stages that read the target's taps and predict a block of five tokens at once, with a low-rank Markov
correction between neighbours and a confidence for every slot."""
import torch
import torch.nn.functional as F

from attention import Attention, window_rows
from blocks import Lookup
from ops import collapse, fuse, fused_rms, rope_table


@fuse
def attend_block(q, ring, block, valid, sink):
    """Every row of a block sees the whole ring and the whole block, later rows included.
    q [N,n,H,d], ring [N,W,d], block [N,n,d], valid bool [N,W] -> [N,n,H,d]"""
    keys = torch.cat([ring, block], 1)
    s = torch.einsum("nthd,njd->nthj", q, keys).float() * q.shape[-1] ** -0.5
    s = s.masked_fill(~F.pad(valid, (0, block.shape[1]), value=True)[:, None, None], -torch.inf)
    top = torch.maximum(s.amax(-1), sink).detach()
    e = torch.exp(s - top[..., None])
    den = e.sum(-1) + torch.exp(sink - top)
    return (torch.einsum("nthj,njd->nthd", e.to(q.dtype), keys).float() / den[..., None]).to(q.dtype)


def draft_rows(model, ids, taps, anchors, num, w):
    """Un-normed rows x [B,A,n,D] of the blocks that start at positions `anchors` [B,A] (the anchor token is known, the
    rows behind it are noise), and their base logits' input rms(x). Row k predicts position anchor + k + 1."""
    c = model.c
    B, A = anchors.shape
    T, W, n, eps = ids.shape[1], c["sliding_window"], c["dspark_block_size"], c["rms_norm_eps"]
    if ("draft", T) not in model.tables:
        model.tables["draft", T] = rope_table(c, 0, torch.arange(T + n, device=ids.device))
    cos, sin = model.tables["draft", T]
    main = fused_rms(F.linear(num.act(taps.detach()), w.cast("main_proj")), w("main_norm"), eps)
    back = anchors[..., None] - W + torch.arange(W, device=ids.device)                        # [B,A,W]
    flat = back.clamp(min=0) + torch.arange(B, device=ids.device)[:, None, None] * T
    pos = (anchors[..., None] + torch.arange(n, device=ids.device)).flatten(1)                # [B,A*n]
    table = cos[pos], sin[pos]
    token = torch.gather(ids, 1, anchors)
    block = F.pad(token[..., None], (0, n - 1), value=c["dspark_noise_token_id"]).flatten(1)
    h, pre = model.start(block, w)
    attention = Attention(c, w, num, None, {})

    def stage(x, l):
        rows = window_rows(F.linear(num.act(main), w.cast("wkv", l)), w("kv_norm", l), cos[:T], sin[:T], eps, num.cache)
        ring = Lookup.apply(rows.flatten(0, 1), flat).flatten(0, 1)                           # [B*A,W,d]
        _, q, kv, _ = attention.qkv(x, l, 0, table)
        o = attend_block(q.reshape(B * A, n, *q.shape[2:]), ring, kv.reshape(B * A, n, -1), (back >= 0).flatten(0, 1),
                         w("attn_sink", l))
        return attention.out(o.reshape(q.shape), l, table)

    counts = []
    for m in range(c["num_nextn_predict_layers"]):
        h, pre, count = model.block(h, pre, c["num_hidden_layers"] + m, w, num, stage, draft=True)
        counts.append(count)
    x = collapse(h, pre).unflatten(1, (A, n))
    return x, fused_rms(x, w("draft_norm"), eps), torch.stack(counts)


@fuse
def draft_loss(base, head, markov, markov_head, x, confidence, hidden):
    """Draft against target on rows [N,n,·]; the target's side is constant.

    cross-entropy to the target's distribution, plus the total variation (its complement is the chance that rejection
    sampling accepts), plus binary cross-entropy of the confidence to that chance."""
    z = (base @ head.to(base.dtype).T).float() + (markov.to(base.dtype) @ markov_head.to(base.dtype).T).float()
    logq = torch.log_softmax(z, -1)
    p = torch.softmax((hidden @ head.to(hidden.dtype).T).float(), -1)
    ce = -(p * logq).sum(-1)
    overlap = torch.minimum(p, logq.exp()).sum(-1)
    logit = (torch.cat([x.detach().float(), markov.float().detach()], -1) * confidence).sum(-1)
    bce = F.binary_cross_entropy_with_logits(logit, overlap.detach(), reduction="none")
    return (ce + (1 - overlap)).mean(), bce.mean(), overlap.detach().mean(0)


def training_loss(model, ids, out, anchors, num):
    """Loss of the draft on blocks at `anchors`; nothing of it reaches the target's own weights."""
    w, n = out["weights"], model.c["dspark_block_size"]
    x, base, counts = draft_rows(model, ids, out["taps"], anchors, num, DetachedEmbed(w))
    at = anchors[..., None] + torch.arange(n, device=ids.device)                              # rows' own positions
    flat = (at + torch.arange(ids.shape[0], device=ids.device)[:, None, None] * ids.shape[1]).flatten()
    markov = Lookup.apply(w("markov_embed"), ids.flatten()[flat]).view(-1, n, w("markov_embed").shape[1])
    hidden = out["hidden"].detach().flatten(0, 1)[flat].view(-1, n, base.shape[-1])
    loss, bce, overlap = draft_loss(base.flatten(0, 1), w("head").detach(), markov, w("markov_head"),
                                    x.flatten(0, 1), w("confidence")[0], hidden)
    return loss, bce, overlap, counts


class DetachedEmbed:
    """The target's weights as the draft sees them: its embedding is read, never trained."""

    def __init__(self, w):
        self.w = w

    def __call__(self, name, l=None):
        return self.w(name, l)

    def cast(self, name, l=None):
        v = self.w.cast(name, l)
        return v.detach() if name == "embed" else v
