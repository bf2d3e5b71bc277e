"""Norm, RoPE and the residual mixing (mHC), each as a pure function that is compiled on a GPU."""
import math

import torch
import torch.nn.functional as F

try:
    import kernels
except ImportError:            # no Triton on this machine: the plain forms are the same functions
    kernels = None


class fuse:
    """Decorator: runs the function as it stands, or through torch.compile once `fuse.on` is set (training on a GPU)."""
    on = False

    def __init__(self, f):
        self.f, self.compiled, self.__doc__ = f, None, f.__doc__

    def __call__(self, *a, **k):
        if not fuse.on:
            return self.f(*a, **k)
        self.compiled = self.compiled or torch.compile(self.f, dynamic=False)
        return self.compiled(*a, **k)


def rms(x, weight, eps):
    """One rounding, after the fp32 product with the weight."""
    v = x.float()
    return (v * torch.rsqrt(v.square().mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


fused_rms = fuse(rms)


# ---- RoPE ----------------------------------------------------------------------------------------------------------
def rope_table(c, ratio, positions):
    """(cos, sin) fp32 [len(positions), rope/2]. The angle is the fp32 product position * frequency, as the model was
    defined; YaRN and the larger base apply to layers with a compressed branch only, and nothing is scaled by mscale."""
    n = c["qk_rope_head_dim"]
    base = c["compress_rope_theta"] if ratio else c["rope_theta"]
    f = 1.0 / torch.tensor(base, dtype=torch.float32) ** (torch.arange(0, n, 2, dtype=torch.float32) / n)
    y = c.get("rope_scaling")
    if ratio and y:
        turn = lambda rot: n * math.log(y["original_max_position_embeddings"] / (rot * 2 * math.pi)) / (2 * math.log(base))
        lo, hi = max(math.floor(turn(y["beta_fast"])), 0), min(math.ceil(turn(y["beta_slow"])), n - 1)
        ramp = ((torch.arange(n // 2) - lo) / max(hi - lo, 1e-3)).clamp(0, 1).float()
        f = f / y["factor"] * ramp + f * (1 - ramp)
    phi = positions.float().cpu()[:, None] * f
    return phi.cos().to(positions.device), phi.sin().to(positions.device)


def rope(x, cos, sin):
    """Rotates adjacent pairs of the last channels; cos and sin broadcast against [..., rope/2]. sin negated inverts."""
    n = 2 * cos.shape[-1]
    keep, turn = x[..., :-n], x[..., -n:].float().unflatten(-1, (n // 2, 2))
    a, b = turn[..., 0], turn[..., 1]
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    return torch.cat([keep, turned.to(x.dtype)], -1)


# ---- single-pass manifold-constrained hyper-connections ------------------------------------------------------------
@fuse
def mix_logits(h, fn, scale, base, rms_eps, eps):
    """h [..., S, D] -> pre [..., S], post [..., S], A [..., S, S]; fp32."""
    S = h.shape[-2]
    u = h.flatten(-2)
    rstd = torch.rsqrt(u.float().square().mean(-1, keepdim=True) + rms_eps)
    m = F.linear(u, fn.to(u.dtype)).float() * rstd
    pre = torch.sigmoid(m[..., :S] * scale[0] + base[:S]) + eps
    post = 2 * torch.sigmoid(m[..., S:2 * S] * scale[1] + base[S:2 * S])
    A = m[..., 2 * S:] * scale[2] + base[2 * S:]
    return pre, post, A.unflatten(-1, (S, S))


def sinkhorn(A, iters, eps):
    """Nearly doubly stochastic C from logits A [..., S, S]: softmax over rows, then columns, then iters-1 row+column
    pairs; eps after the softmax and in every denominator."""
    if kernels is not None and A.is_cuda:
        return kernels.sinkhorn(A, iters, eps)
    C = A.softmax(-1) + eps
    C = C / (C.sum(-2, keepdim=True) + eps)
    for _ in range(iters - 1):
        C = C / (C.sum(-1, keepdim=True) + eps)
        C = C / (C.sum(-2, keepdim=True) + eps)
    return C


def mix(h, fn, scale, base, c):
    pre, post, A = mix_logits(h, fn, scale, base, c["rms_norm_eps"], c["hc_eps"])
    return pre, post, sinkhorn(A, c["hc_sinkhorn_iters"], c["hc_eps"])


@fuse
def collapse(h, a):
    """[..., S, D], [..., S] -> [..., D]"""
    return (a[..., None] * h.float()).sum(-2).to(h.dtype)


@fuse
def collapse_norm(h, a, weight, eps):
    return rms((a[..., None] * h.float()).sum(-2).to(h.dtype), weight, eps)


@fuse
def expand(y, h, post, C):
    """out[k] = post[k] * y + sum_j C[j][k] * h[j]: C is used transposed. Written stream by stream so that the compiler
    keeps it one pass over h."""
    hs, yf = h.float(), y.float()
    S = h.shape[-2]
    out = [post[..., k, None] * yf + sum(C[..., j, k, None] * hs[..., j, :] for j in range(S)) for k in range(S)]
    return torch.stack(out, -2).to(h.dtype)
