"""Two operations that the compiler has no good form for, as Triton kernels: Sinkhorn and the k-th largest of a row.

Sinkhorn works on 4x4 matrices, one kernel each way. Every half step divides by its sums, so the backward pass recovers the
matrix before the step as (matrix after) * (saved sums): only the sums are stored, 4 floats a half step.
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _forward(A, C, DEN, n, eps, ITERS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i4 = tl.arange(0, 4)
    off = row[:, None, None] * 16 + i4[None, :, None] * 4 + i4[None, None, :]
    live3, live2 = (row < n)[:, None, None], (row < n)[:, None]
    den = DEN + row[:, None] * (ITERS * 8) + i4[None, :]
    a = tl.load(A + off, mask=live3, other=0.0)
    e = tl.exp(a - tl.max(a, axis=2)[:, :, None])
    c = e / tl.sum(e, axis=2)[:, :, None] + eps
    for it in range(ITERS):
        if it > 0:
            r = tl.sum(c, axis=2) + eps
            c = c / r[:, :, None]
            tl.store(den + it * 8, r, mask=live2)
        s = tl.sum(c, axis=1) + eps
        c = c / s[:, None, :]
        tl.store(den + it * 8 + 4, s, mask=live2)
    tl.store(C + off, c, mask=live3)


@triton.jit
def _backward(C, G, DEN, GA, n, eps, ITERS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i4 = tl.arange(0, 4)
    off = row[:, None, None] * 16 + i4[None, :, None] * 4 + i4[None, None, :]
    live3, live2 = (row < n)[:, None, None], (row < n)[:, None]
    den = DEN + row[:, None] * (ITERS * 8) + i4[None, :]
    c = tl.load(C + off, mask=live3, other=0.25)
    g = tl.load(G + off, mask=live3, other=0.0)
    for back in range(ITERS):
        it = ITERS - 1 - back
        s = tl.load(den + it * 8 + 4, mask=live2, other=1.0)
        g = (g - tl.sum(g * c, axis=1)[:, None, :]) / s[:, None, :]
        c = c * s[:, None, :]
        if it > 0:
            r = tl.load(den + it * 8, mask=live2, other=1.0)
            g = (g - tl.sum(g * c, axis=2)[:, :, None]) / r[:, :, None]
            c = c * r[:, :, None]
    p = c - eps
    tl.store(GA + off, p * (g - tl.sum(g * p, axis=2)[:, :, None]), mask=live3)


class _Sinkhorn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, iters, eps):
        A = A.contiguous()
        n = A.numel() // 16
        C, den = torch.empty_like(A), A.new_empty(n, iters * 8)
        _forward[(triton.cdiv(n, 64),)](A, C, den, n, eps, ITERS=iters, BLOCK=64, num_warps=2)
        ctx.save_for_backward(C, den)
        ctx.args = n, iters, eps
        return C

    @staticmethod
    def backward(ctx, G):
        C, den = ctx.saved_tensors
        n, iters, eps = ctx.args
        GA = torch.empty_like(C)
        _backward[(triton.cdiv(n, 64),)](C, G.contiguous(), den, GA, n, eps, ITERS=iters, BLOCK=64, num_warps=2)
        return GA, None, None


sinkhorn = _Sinkhorn.apply


@triton.jit
def _kth(X, OUT, n, k, BLOCK: tl.constexpr):
    """Bisection over the 32 bits of order-preserving keys; the row stays in registers."""
    j = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    u = tl.load(X + row * n + j, mask=j < n, other=float("-inf")).to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    key = tl.where(u >= 0x80000000, 0xFFFFFFFF - u, u + 0x80000000)
    best = tl.program_id(0).to(tl.int64) * 0
    for i in range(32):
        trial = best + ((row * 0 + 0x80000000) >> i)
        best = tl.where(tl.sum((key >= trial).to(tl.int32)) >= k, trial, best)
    back = tl.where(best >= 0x80000000, best - 0x80000000, 0xFFFFFFFF - best)
    tl.store(OUT + row, back.to(tl.uint32).to(tl.float32, bitcast=True))


def kth_largest(x, k):
    """x fp32 [..., n] -> [..., 1]"""
    x, n = x.contiguous(), x.shape[-1]
    out = x.new_empty(x.shape[:-1] + (1,))
    _kth[(x.numel() // n,)](x, out, n, k, BLOCK=triton.next_power_of_2(n), num_warps=4)
    return out
