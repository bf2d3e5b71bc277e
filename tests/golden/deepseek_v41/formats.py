"""Number formats of the checkpoint and of the caches, and a safetensors writer that knows the 8-bit types.

Every function takes and returns float64 arrays whose values are exact in the format named; fp32 enters only where
the format's rule is written in fp32 (the product with 1/448, the division by a scale).
"""
import json

import numpy as np

# ---- grids: value of each code --------------------------------------------------------------------------------------


def _e4m3_value(code):
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = (code >> 3) & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return float("nan")
    if exponent == 0:
        return sign * mantissa * 2.0**-9
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


E4M3_VALUES = np.array([_e4m3_value(c) for c in range(256)])
_HALVES = [0, 1, 2, 3, 4, 6, 8, 12]
E2M1_VALUES = np.array([h / 2 for h in _HALVES] + [-h / 2 for h in _HALVES])
E4M3_MAX, E2M1_MAX = 448.0, 6.0


def _to_grid(x, positive_values, sign_bit):
    """Codes of the nearest grid values: ties to the even code, beyond the largest value clamped to it."""
    magnitude = np.abs(x)
    middles = (positive_values[1:] + positive_values[:-1]) / 2
    code = np.searchsorted(middles, magnitude, side="left")  # at a middle: the lower code
    at_middle = (code < len(middles)) & (magnitude == middles[np.minimum(code, len(middles) - 1)])
    code = code + (at_middle & (code % 2 == 1))  # an odd lower code gives way
    return (code + np.where(np.signbit(x), sign_bit, 0)).astype(np.uint8)


def to_e4m3(x):
    return _to_grid(x, E4M3_VALUES[:127], 0x80)


def to_e2m1(x):
    return _to_grid(x, E2M1_VALUES[:8], 8)


def to_bf16(x):
    """Nearest bf16, ties to even, through fp32 as an implementation has it; the result as float64."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def bf16_bits(x):
    return (to_bf16(x).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def ceil_log2(t):
    """Smallest k with 2^k >= t, t positive fp32."""
    mantissa, exponent = np.frexp(np.asarray(t, np.float32))  # t = mantissa * 2^exponent, mantissa in [0.5, 1)
    return np.where(mantissa == 0.5, exponent - 1, exponent).astype(np.int64)


# ---- quantisers inside the model: through the codes and back --------------------------------------------------------
_1_448, _1_6 = np.float32(1 / 448), np.float32(1 / 6)


def _blocks(x, n):
    return x.reshape(x.shape[:-1] + (x.shape[-1] // n, n))


def through_fp8(x):
    """Activations and window rows: e4m3, a power-of-two scale for 32 channels."""
    b = _blocks(x, 32)
    amax = np.maximum(np.abs(b).max(-1, keepdims=True).astype(np.float32), np.float32(1e-4))
    scale = np.exp2(ceil_log2(amax * _1_448).astype(np.float64))
    return (E4M3_VALUES[to_e4m3(b / scale)] * scale).reshape(x.shape)


def through_fp4_index(x):
    """Index keys and queries: e2m1, a power-of-two scale for 32 channels."""
    b = _blocks(x, 32)
    amax = np.maximum(np.abs(b).max(-1, keepdims=True).astype(np.float32), np.float32(6 * 2.0**-126))
    scale = np.exp2(ceil_log2(amax * _1_6).astype(np.float64))
    return (E2M1_VALUES[to_e2m1(b / scale)] * scale).reshape(x.shape)


def through_fp4_row(x):
    """Compressed rows: e2m1, an e4m3 scale for 16 channels."""
    b = _blocks(x, 16)
    amax = np.maximum(np.abs(b).max(-1, keepdims=True).astype(np.float32), np.float32(6 * 2.0**-9))
    scale = E4M3_VALUES[to_e4m3(amax / np.float32(6))].astype(np.float32)
    quotient = (b.astype(np.float32) / scale).astype(np.float64)
    return (E2M1_VALUES[to_e2m1(quotient)] * scale).reshape(x.shape)


# ---- weights: codes, scale bytes and the values they stand for ------------------------------------------------------


def encode_weight(w, fmt):
    """fmt 'fp8' (32x32 blocks), 'fp8_row' (1x32) or 'fp4' (1x32). Returns (dtype, bytes, scale bytes, values)."""
    rows = 32 if fmt == "fp8" else 1
    largest = E2M1_MAX if fmt == "fp4" else E4M3_MAX
    o, i = w.shape
    amax = np.abs(w).reshape(o // rows, rows, i // 32, 32).max(axis=(1, 3))
    k = ceil_log2(np.maximum(amax, 1e-30) / largest)
    scale = np.exp2(k.astype(np.float64)).repeat(rows, axis=0).repeat(32, axis=1)
    scale_bytes = (k + 127).astype(np.uint8)
    if fmt == "fp4":
        codes = to_e2m1(w / scale)
        return "I8", codes[:, 0::2] | (codes[:, 1::2] << 4), scale_bytes, E2M1_VALUES[codes] * scale
    codes = to_e4m3(w / scale)
    return "F8_E4M3", codes, scale_bytes, E4M3_VALUES[codes] * scale


# ---- safetensors ----------------------------------------------------------------------------------------------------


def write_safetensors(path, tensors, metadata=None):
    """tensors: name -> (dtype string, array of the bytes' layout). Written in name order."""
    header, offset, order = {}, 0, sorted(tensors)
    if metadata:
        header["__metadata__"] = {k: str(v) for k, v in metadata.items()}
    for name in order:
        dtype, array = tensors[name]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little"))
        out.write(text)
        for name in order:
            out.write(np.ascontiguousarray(tensors[name][1]).tobytes())


def f32(a):
    return "F32", np.asarray(a, np.float32)


def bf16(a):
    """Of values that are exact in bf16; others are refused."""
    a = np.asarray(a, np.float64)
    assert np.array_equal(to_bf16(a), a), "not exact in bf16"
    return "BF16", bf16_bits(a)


def i32(a):
    return "I32", np.asarray(a, np.int32)


def i64(a):
    return "I64", np.asarray(a, np.int64)
