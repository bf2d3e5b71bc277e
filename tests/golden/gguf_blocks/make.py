#!/usr/bin/env python3
"""Random GGUF blocks of every format that Gannet reads, and what the `gguf` package makes of them.

    pip install gguf==0.19.0 numpy==2.4.6 && python3 tests/golden/gguf_blocks/make.py

blocks.bin: for each format an 8-byte name, three little-endian u32 (blocks, bytes a block, elements a block), the blocks,
and their values as f32."""
import os
import struct

import gguf
import numpy as np

FORMATS = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K MXFP4".split()
SCALES = dict(Q4_0=[0], Q4_1=[0, 2], Q5_0=[0], Q5_1=[0, 2], Q8_0=[0], Q2_K=[80, 82], Q3_K=[108], Q4_K=[0, 2], Q5_K=[0, 2],
              Q6_K=[208])
# Besides random ones: largest, smallest normal, subnormals, zeros of both signs, values that make sums round.
SPECIAL = np.array([65504, -65504, 6.1035e-05, 6e-08, -5.96e-08, 0.0, -0.0, 1.0, 0.1, 3.0], dtype=np.float16)


def main():
    rng = np.random.default_rng(20260901)
    assert gguf.__file__
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "blocks.bin"), "wb") as out:
        for name in FORMATS:
            kind = gguf.GGMLQuantizationType[name]
            elements, size = gguf.GGML_QUANT_SIZES[kind]
            n = 24 if elements == 256 else 64
            blocks = rng.integers(0, 256, (n, size), dtype=np.uint8)
            for at in SCALES.get(name, []):
                scale = (rng.standard_normal(n) * 0.02).astype(np.float16)
                scale[: len(SPECIAL)] = rng.permutation(SPECIAL)
                blocks[:, at : at + 2] = scale.view(np.uint8).reshape(n, 2)
            if name == "MXFP4":
                blocks[:, 0] = rng.integers(2, 250, n)   # 0, 1 and 255 have tests of their own
            values = gguf.quants.dequantize(blocks, kind).astype(np.float32)
            assert values.shape == (n, elements) and np.isfinite(values).all(), name
            out.write(name.encode().ljust(8, b"\0") + struct.pack("<III", n, size, elements))
            out.write(blocks.tobytes() + values.tobytes())


if __name__ == "__main__":
    main()
