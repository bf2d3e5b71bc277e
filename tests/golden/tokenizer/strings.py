"""Random and adversarial strings, the same as those of tests/text/tokenizer_strings.h: given a seed and an index,
both give the same bytes. fragments.json holds the pieces and the code points assigned in Unicode 14."""
import hashlib
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).resolve().parent
MASK = (1 << 64) - 1


class Strings:
    def __init__(self, extra=()):
        data = json.loads((HERE / "fragments.json").read_text())
        self.fragments = data["fragments"] + list(extra)
        self.ranges = data["ranges"]

    def make(self, seed, index):
        state = (seed * 0x9E3779B97F4A7C15 + index + 1) & MASK

        def draw(n):  # splitmix64
            nonlocal state
            state = (state + 0x9E3779B97F4A7C15) & MASK
            z = state
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            return (z ^ (z >> 31)) % n

        parts = []
        for _ in range(1 + draw(20)):
            kind = draw(16)
            if kind < 10:
                parts.append(self.fragments[draw(len(self.fragments))])
            elif kind < 14:
                low, high = self.ranges[draw(len(self.ranges))]
                parts.append(chr(low + draw(high - low + 1)))
            elif kind < 15:
                fragment = self.fragments[draw(len(self.fragments))]
                parts.append(fragment * (1 + draw(12)))
            else:
                for _ in range(1 + draw(8)):
                    parts.append(chr(32 + draw(95)))
        return "".join(parts)


def hash_rows(rows):
    """SHA-256, shortened, over rows of ids (four little-endian bytes each) or of bytes, each behind its length."""
    digest = hashlib.sha256()
    for row in rows:
        body = row if isinstance(row, bytes) else struct.pack(f"<{len(row)}i", *row)
        digest.update(struct.pack("<I", len(row)) + body)
    return digest.hexdigest()[:16]
