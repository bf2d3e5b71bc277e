"""Text from the trainer's model, plain or through the DSpark draft, for samples and acceptance figures.

The whole prefix is run again for every step: at a few hundred tokens that is cheap on a GPU, and it has no cache that could
hide a fault.
"""
import torch
import torch.nn.functional as F

import dspark

EOS = 1


def batch(prompts, width, device):
    return torch.tensor([p + [2] * (width - len(p)) for p in prompts], device=device)


def run(model, ids, num, w):
    """Forward over [B,T] padded to whole windows."""
    return model.forward(F.pad(ids, (0, -ids.shape[1] % model.c["sliding_window"]), value=2), num, w)


def pick(logits, temperature, ban):
    """(token, distribution). `ban` holds ids that never reach text."""
    logits = logits.float().index_fill(-1, ban, -torch.inf)
    if temperature == 0:
        return logits.argmax(-1), None
    p = torch.softmax(logits / temperature, -1)
    return torch.multinomial(p.flatten(0, -2), 1).view(p.shape[:-1]), p


@torch.no_grad()
def generate(model, prompts, num, ban, max_new=160, temperature=0.0):
    """prompts: token lists -> lists of new tokens, each ending at EOS or at max_new."""
    w, seqs, live = model.weights(num), [list(p) for p in prompts], list(range(len(prompts)))
    for _ in range(max_new):
        ids = batch([seqs[i] for i in live], max(len(seqs[i]) for i in live), model.device)
        if ids.shape[1] >= model.c["max_position_embeddings"]:
            break
        hidden = run(model, ids, num, w)["hidden"]
        last = torch.tensor([len(seqs[i]) - 1 for i in live], device=model.device)
        token, _ = pick(hidden[torch.arange(len(live)), last].float() @ w("head").T, temperature, ban)
        for i, t in zip(live, token.tolist()):
            seqs[i].append(t)
        live = [i for i in live if seqs[i][-1] != EOS]
        if not live:
            break
    return [s[len(p):] for s, p in zip(seqs, prompts)]


def propose(model, ids, taps, anchors, num, w, ban, temperature):
    """Drafts [B,n], their distributions [B,n,V] (or None) and confidences [B,n] behind anchors [B]."""
    x, base, _ = dspark.draft_rows(model, ids, taps, anchors[:, None], num, w)
    x, base = x[:, 0].float(), base[:, 0].float()
    prev, tokens, laws, confidence = ids.gather(1, anchors[:, None])[:, 0], [], [], []
    for k in range(x.shape[1]):
        e = w("markov_embed")[prev]
        confidence.append(torch.sigmoid((torch.cat([x[:, k], e], -1) * w("confidence")[0]).sum(-1)))
        prev, law = pick(base[:, k] @ w("head").T + e @ w("markov_head").T, temperature, ban)
        tokens.append(prev)
        laws.append(law)
    return torch.stack(tokens, 1), None if temperature == 0 else torch.stack(laws, 1), torch.stack(confidence, 1)


def accept(drafts, q, logits, temperature, ban):
    """Token-wise rejection (greedy: equality). logits [B,n+1,V] -> (accepted [B], the token behind them [B])."""
    token, p = pick(logits, temperature, ban)
    n = drafts.shape[1]
    if temperature == 0:
        hit = drafts == token[:, :n]
    else:
        pd, qd = p[:, :n].gather(-1, drafts[..., None])[..., 0], q.gather(-1, drafts[..., None])[..., 0]
        hit = torch.rand_like(pd) * qd < pd
    a = hit.long().cumprod(1).sum(1)
    if temperature > 0:
        row = torch.arange(len(a), device=a.device)
        rest = (p[row, a] - F.pad(q, (0, 0, 0, 1))[row, a]).clamp(min=0)      # behind a full block q is 0 and rest is p
        empty = rest.sum(-1, keepdim=True) <= 0
        return a, torch.multinomial(torch.where(empty, p[row, a], rest), 1)[:, 0]
    return a, token.gather(1, a[:, None])[:, 0]


@torch.no_grad()
def speculate(model, prompts, num, ban, max_new=128, temperature=0.0):
    """Draft-and-verify decoding. Returns the new tokens of every prompt, and per round (drafts accepted, confidences)."""
    w, n, dev = model.weights(num), model.c["dspark_block_size"], model.device
    length = torch.tensor([len(p) for p in prompts], device=dev)
    width = int(length.max()) + max_new + 2 * n + 2          # a sequence that is done keeps drafting behind its end
    ids = batch(prompts, width, dev)
    out, row = run(model, ids, num, w), torch.arange(len(prompts), device=dev)
    first, _ = pick(out["hidden"][row, length - 1].float() @ w("head").T, temperature, ban)
    ids[row, length] = first                                                 # the anchor: sampled, not yet run
    pos, done, rounds = length.clone(), first == EOS, []
    while not bool(done.all()):
        drafts, q, confidence = propose(model, ids, out["taps"][:, :width], pos, num, w, ban, temperature)
        at = pos[:, None] + torch.arange(n + 1, device=dev)
        trial = ids.scatter(1, at[:, 1:], drafts)
        verify = run(model, trial, num, w)
        a, after = accept(drafts, q, verify["hidden"].gather(1, at[..., None].expand(-1, -1, model.c["hidden_size"])).float()
                          @ w("head").T, temperature, ban)
        for b in (~done).nonzero()[:, 0].tolist():
            rounds.append((int(a[b]), confidence[b].tolist()))
            new = drafts[b, :a[b]].tolist() + [int(after[b])]
            if EOS in new:
                new, done[b] = new[:new.index(EOS) + 1], True
            ids[b, pos[b] + 1:pos[b] + 1 + len(new)] = torch.tensor(new, device=dev)
            pos[b] += len(new)
            done[b] |= bool(pos[b] - length[b] >= max_new - 1)
        out = verify
    return [ids[b, length[b]:pos[b] + 1].tolist() for b in range(len(prompts))], rounds
