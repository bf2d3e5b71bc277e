"""Number formats of the released checkpoint and cache, as straight-through quantisers and as byte encoders.

Training sees the value that the format can hold; the gradient passes as if nothing had been rounded. The exporter uses
the same functions on the same fp32 weights, so that the shipped bytes hold exactly the values the model was trained with.
"""
import torch

E2M1 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
FL_1_448, FL_1_6 = 0.002232142857142857, 0.16666667163372040   # fl32(1/448), fl32(1/6)


def ste(x, q):
    """Value q, gradient of x. The identity q = x + (q - x) holds to one fp32 rounding, below any format used here."""
    return x + (q - x).detach() if x.requires_grad else q


def ceil_pow2(t):
    """The smallest power of two >= t > 0, by the bits of the fp32 pattern: a logarithm may round across an integer."""
    u = t.view(torch.int32)
    k = ((u >> 23) & 255) + ((u & 0x7FFFFF) != 0).to(torch.int32)
    return (k << 23).view(torch.float32)


def e4m3(v):
    """Nearest e4m3 value, ties to even, saturating at 448 (the bare cast would give NaN above 464)."""
    return v.clamp(-448.0, 448.0).to(torch.float8_e4m3fn).to(torch.float32)


def e2m1(v):
    """Nearest of 0, .5, 1, 1.5, 2, 3, 4, 6, ties to the even code: rounding half to even on each binade's own step."""
    a = v.abs().clamp(max=6.0)
    step = torch.where(a < 2, 0.5, torch.where(a < 4, 1.0, 2.0))
    return torch.copysign(torch.round(a / step) * step, v)


def blocks(x, n):
    return x.float().unflatten(-1, (x.shape[-1] // n, n))


def scale_fp8(amax):
    return ceil_pow2(amax.clamp(min=1e-4) * FL_1_448)


def fake_fp8(x):
    """Q_act and Q_win: e4m3 with one power-of-two scale per 32 channels. Keeps the dtype of x (the values fit bf16)."""
    g = blocks(x, 32)
    s = scale_fp8(g.abs().amax(-1, keepdim=True))
    return ste(x, (e4m3(g / s) * s).flatten(-2).to(x.dtype))


def fake_idx(x):
    """Q_idx: e2m1 with one power-of-two scale per 32 channels."""
    g = blocks(x, 32)
    s = ceil_pow2(g.abs().amax(-1, keepdim=True).clamp(min=6 * 2.0**-126) * FL_1_6)
    return ste(x, (e2m1(g / s) * s).flatten(-2).to(x.dtype))


def fake_comp(x):
    """Q_comp: e2m1 with one e4m3 scale per 16 channels."""
    g = blocks(x, 16)
    s = e4m3(g.abs().amax(-1, keepdim=True).clamp(min=6 * 2.0**-9) / 6)
    return ste(x, (e2m1(g / s) * s).flatten(-2).to(x.dtype))


# ---- weights: fp32 in, (codes as values, scales) out ---------------------------------------------------------------
def weight_scale(w, kind):
    """One power-of-two scale per 32x32 block (fp8) or per 32 inputs of a row (fp4, row8), broadcastable over `grid`."""
    g = grid(w, kind)
    amax = g.abs().amax((-1, -3) if kind == "fp8" else -1, keepdim=True).clamp(min=1e-30)
    return ceil_pow2(amax * FL_1_6) if kind == "fp4" else ceil_pow2(amax * FL_1_448)


def grid(w, kind):
    """[..., out, in] -> [..., out/32, 32, in/32, 32] for fp8, [..., out, in/32, 32] else."""
    g = w.unflatten(-1, (w.shape[-1] // 32, 32))
    return g.unflatten(-3, (w.shape[-2] // 32, 32)) if kind == "fp8" else g


def weight_value(w, kind):
    """The weight as the released format holds it, straight-through; fp32."""
    if kind == "f32":
        return w
    if kind == "bf16":
        return ste(w, w.to(torch.bfloat16).float())
    g, s = grid(w, kind), weight_scale(w, kind)
    return ste(w, ((e2m1(g / s) if kind == "fp4" else e4m3(g / s)) * s).reshape(w.shape))


def encode(w, kind):
    """Bytes of the released format: (weight tensor, scale bytes or None)."""
    w = w.detach().float().cpu()
    if kind in ("f32", "bf16"):
        return (w if kind == "f32" else w.to(torch.bfloat16)), None
    s = weight_scale(w, kind)
    code = grid(w, kind) / s
    scale = (s.view(torch.int32) >> 23).to(torch.uint8)
    scale = scale.squeeze(-1).squeeze(-2) if kind == "fp8" else scale.squeeze(-1)
    if kind != "fp4":
        return code.clamp(-448, 448).to(torch.float8_e4m3fn).reshape(w.shape), scale
    v = e2m1(code).reshape(w.shape)
    c = torch.bucketize(v.abs(), E2M1[:8]).to(torch.uint8) | (torch.signbit(v).to(torch.uint8) << 3)
    return (c[..., 0::2] | c[..., 1::2] << 4).view(torch.int8), scale


def decode(w, scale, kind):
    """Inverse of encode."""
    if kind in ("f32", "bf16"):
        return w.float()
    s = (scale.to(torch.int32) << 23).view(torch.float32)
    if kind == "fp4":
        u = w.view(torch.uint8)
        v = E2M1[torch.stack([u & 15, u >> 4], -1).flatten(-2).long()]
    else:
        v = w.float()
    s = s.repeat_interleave(32, -1)
    return v * (s.repeat_interleave(32, -2) if kind == "fp8" else s)
