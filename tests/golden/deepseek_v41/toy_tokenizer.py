"""A byte-level tokenizer of 320 ids with the family's control tokens, and what Engram derives from a tokenizer."""
import math
import unicodedata

import numpy as np

VOCAB = 320
CONTROL = {
    0: "<｜begin▁of▁sentence｜>", 1: "<｜end▁of▁sentence｜>", 2: "<｜▁pad▁｜>",
    305: "<｜User｜>", 306: "<｜Assistant｜>", 307: "<think>", 308: "</think>", 309: "｜DSML｜",
    310: "<｜latest_reminder｜>", 311: "<｜fim▁hole｜>", 312: "<｜fim▁begin｜>", 313: "<｜fim▁end｜>",
    314: "<｜action｜>", 315: "<｜query｜>", 316: "<｜title｜>", 317: "<｜read_url｜>",
    318: "<｜deepseek_image｜>", 319: "<｜System｜>",
}
IMAGE_ID = 318
SPECIAL = (0, 1, 2)
# Merged pieces, each the join of two earlier ones. Case, accent and space variants share an Engram key.
PIECES = ["th", "Th", "TH", " t", " T", " a", " A", "he", "He", "HE", "the", "The", "THE", " the", " The", " THE", "in",
          "an", "and", " an", " and", "er", "re", "ou", "  ", "\n\n", "ll", "é", "É", "ê", " s", " S", "is", " is", "ing",
          "or", "on", "at", "en", "ed", "es", "it", "st", "to", " to"]

_DIGITS = "\\p{N}{1,3}"
_CJK = "[一-龥぀-ゟ゠-ヿ]+"
_WORDS = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
          " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")


def byte_characters():
    """The printable character that stands for each byte: itself where printable, else from U+0100 upwards."""
    printable = set(range(33, 127)) | set(range(161, 173)) | set(range(174, 256))
    spare = iter(range(256, 512))
    return [chr(b) if b in printable else chr(next(spare)) for b in range(256)]


def vocabulary():
    """(token string of each id, merges)."""
    chars = byte_characters()
    tokens = {i: t for i, t in CONTROL.items()} | {3 + b: chars[b] for b in range(256)}
    known, merges, next_id = set(chars), [], 259
    for piece in PIECES:
        text = "".join(chars[b] for b in piece.encode())
        split = next(k for k in range(len(text) - 1, 0, -1) if text[:k] in known and text[k:] in known)
        merges.append([text[:split], text[split:]])
        assert next_id not in tokens, "too many pieces"
        tokens[next_id] = text
        known.add(text)
        next_id += 1
    for i in range(next_id, VOCAB):
        tokens.setdefault(i, f"<｜place▁holder▁no▁{i}｜>")
    return tokens, merges


def tokenizer_json():
    tokens, merges = vocabulary()
    split = lambda regex: {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    added = [i for i, t in tokens.items() if t[0] in "<｜" and len(t) > 1]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [dict(id=i, content=tokens[i], single_word=False, lstrip=False, rstrip=False, normalized=False,
                              special=i in SPECIAL) for i in sorted(added)],
        "normalizer": {"type": "Sequence", "normalizers": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(_DIGITS), split(_CJK), split(_WORDS), bytes_]},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {tokens[i]: i for i in sorted(tokens)}, "merges": merges},
    }


# ---- Engram: token map, primes, multipliers -------------------------------------------------------------------------
_WHITE = "".join(map(chr, [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
                           0x205F, 0x3000]))


def _normalised(text):
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    text = "".join(c.lower() for c in text if unicodedata.category(c)[0] != "M")
    out, in_run = [], False
    for c in text:
        if c in " \t\r\n":
            if not in_run:
                out.append(" ")
            in_run = True
        else:
            out.append(c)
            in_run = False
    text = "".join(out)
    return " " if text == " " else text.strip(_WHITE)


def token_map():
    """Compressed id of every token id, and their number."""
    byte_of = {c: b for b, c in enumerate(byte_characters())}
    tokens, _ = vocabulary()
    keys, result = {}, []
    for i in range(VOCAB):
        raw = tokens[i]
        inside = all(c in byte_of for c in raw)
        text = bytes(byte_of[c] for c in raw).decode("utf-8", "replace") if inside else raw
        key = raw if "\ufffd" in text else (_normalised(text) or text)
        result.append(keys.setdefault(key, len(keys)))
    return np.array(result), len(keys)


def engram_tables(config, n_keys):
    """primes[layer][n-gram][head] and multipliers[layer][term]."""
    taken, primes, multipliers = set(), [], []
    bound = max(1, ((2**63 - 1) // n_keys) // 2)
    for layer in config["engram_layer_ids"]:
        of_layer = []
        for _ in range(2, config["engram_max_ngram_size"] + 1):
            candidate, of_ngram = config["engram_vocab_size"], []
            while len(of_ngram) < config["engram_n_heads"]:
                if candidate not in taken and all(candidate % d for d in range(2, math.isqrt(candidate) + 1)):
                    taken.add(candidate)
                    of_ngram.append(candidate)
                candidate += 1
            of_layer.append(of_ngram)
        primes.append(of_layer)
        draws = np.random.default_rng(10007 * layer).integers(0, bound, config["engram_max_ngram_size"], np.int64)
        multipliers.append(draws * 2 + 1)
    return primes, multipliers
