"""Muon for the matrices inside the blocks, AdamW for everything else; both may run inside a captured graph."""
import torch

MATRICES = ("wq_a", "wq_b", "wkv", "wo_a", "wo_b", "shared_w1", "shared_w2", "shared_w3", "w1", "w2", "w3", "comp_wkv",
            "comp_wgate", "idx_wk", "idx_wq_b", "engram_wkv", "main_proj", "draft_w1", "draft_w2", "draft_w3")
# Learning rate of an AdamW tensor relative to the common one; tables see few gradients a row, mixers steer everything.
RELATIVE = {"embed": 1.0, "head": 0.6, "markov_embed": 1.0, "markov_head": 0.6, "gate": 0.3, "draft_gate": 0.3,
            "hc_attn_fn": 0.2, "hc_ffn_fn": 0.2, "engram_table0": 3.0, "engram_table1": 3.0, "confidence": 0.3,
            "idx_weights": 0.5, "attn_sink": 1.0}


def orthogonalise(g):
    """Newton-Schulz, five steps, on a batch of matrices [N,m,n]; singular values end near 1."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        b = -4.7750 * a + 2.0315 * a @ a
        x = 3.4445 * x + b @ x
    return (x.mT if tall else x).float()


class Muon:
    def __init__(self, params, lr, weight_decay, momentum=0.95):
        self.params, self.lr, self.decay, self.momentum = params, lr, weight_decay, momentum
        self.buffers = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self):
        for p, b in zip(self.params, self.buffers):
            b.lerp_(p.grad, 1 - self.momentum)
            g = p.grad.lerp(b, self.momentum)
            u = orthogonalise(g.reshape(-1, *p.shape[-2:])).view(p.shape)
            rate = self.lr * (0.2 * max(p.shape[-2:]) ** 0.5)          # the update's size is then AdamW's
            p.mul_(1 - self.lr * self.decay).sub_(u * rate)


class Optimiser:
    """lr is a device scalar that the schedule writes, so that a captured step follows it."""

    def __init__(self, params, weight_decay=0.05, clip=1.0):
        first = next(iter(params.values()))
        self.params, self.clip = params, clip
        self.lr = torch.zeros((), device=first.device)
        self.muon = Muon([params[k] for k in MATRICES], self.lr, weight_decay)
        rest = [k for k in params if k not in MATRICES and not k.endswith("gate_bias")]
        groups = {}
        for k in rest:
            groups.setdefault(RELATIVE.get(k, 0.4), []).append(params[k])
        self.rates = [(f, torch.zeros((), device=first.device)) for f in groups]
        gpu = first.is_cuda
        self.adam = torch.optim.AdamW([dict(params=ps, lr=r) for (_, r), ps in zip(self.rates, groups.values())],
                                      betas=(0.9, 0.98), eps=1e-12, weight_decay=0.0, fused=gpu or None, capturable=gpu)
        self.trained = [params[k] for k in params if not k.endswith("gate_bias")]

    def set_lr(self, lr):
        self.lr.fill_(lr)
        for f, r in self.rates:
            r.fill_(lr * f)

    def step(self):
        """Clips the global norm, then both updates. Returns the norm."""
        grads = [p.grad for p in self.trained]
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        torch._foreach_mul_(grads, (self.clip / (norm + 1e-6)).clamp(max=1.0))
        self.muon.step()
        self.adam.step()
        return norm

    def state(self):
        return dict(muon=self.muon.buffers, adam=self.adam.state_dict())

    def load(self, s):
        for b, v in zip(self.muon.buffers, s["muon"]):
            b.copy_(v)
        self.adam.load_state_dict(s["adam"])
        for (_, r), g in zip(self.rates, self.adam.param_groups):
            g["lr"] = r                                               # loading replaced the schedule's scalars
