"""Writes what the tests of text/ read: a tiny tokenizer in the form of V4.1's, small tokenizers with the components of
every family, and hashes of the ids that the `tokenizers` library gives on the strings of strings.py.

    make_golden.py            with tokenizers 0.23.3
"""
import json
import pathlib

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

import families
from strings import Strings, hash_rows

HERE = pathlib.Path(__file__).resolve().parent
COUNT, PER, SEED = 20000, 1000, 11
CORPUS = ("The quick brown fox jumps over the lazy dog. It was the best of times, it was the worst of times; we had "
          "everything before us, we had nothing before us. To be, or not to be: that is the question. In the beginning "
          "there was nothing but text, and the text was in bytes. def main(): return [int(x) for x in range(10)]\n"
          "{\"name\": \"value\", \"numbers\": [1, 2, 3.5]} naïve café 你好 世界 日本語 のテキスト Сказка привет\n")

# Names and flags (normalized, special) of V4.1's control tokens; bos, eos and pad are ids 0, 1, 2.
TINY_FRONT = [("<｜begin▁of▁sentence｜>", False, True), ("<｜end▁of▁sentence｜>", False, True), ("<｜▁pad▁｜>", False, True)]
TINY_BACK = [("<｜System｜>", False, True), ("<｜fim▁hole｜>", True, False), ("<｜fim▁begin｜>", True, False),
             ("<｜fim▁end｜>", True, False), ("<｜User｜>", True, False), ("<｜Assistant｜>", True, False),
             ("<think>", True, False), ("</think>", True, False), ("｜DSML｜", True, False),
             ("<｜latest_reminder｜>", True, False), ("<｜action｜>", True, False), ("<｜query｜>", True, False),
             ("<｜authority｜>", True, False), ("<｜domain｜>", True, False), ("<｜title｜>", True, False),
             ("<｜read_url｜>", True, False), ("<｜deepseek_image｜>", True, False)]
TINY_SIZE = 320


def alphabet():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in kept]
    return {b: chr(b) for b in kept} | {b: chr(256 + i) for i, b in enumerate(rest)}


def tiny():
    letters = alphabet()
    vocab = {name: i for i, (name, _, _) in enumerate(TINY_FRONT)}
    for b in range(256):
        vocab[letters[b]] = len(vocab)
    merges = []
    want = TINY_SIZE - len(vocab) - len(TINY_BACK)
    for word in "he in re on er the ing an or ed to of and is that it Ġt Ġa Ġthe Ġo Ġs Ġw Ġc Ġb Ġin Ġan Ġand ĠĠ ĊĊ ĠĠĠĠ 12 00 <th".split():
        for end in range(2, len(word) + 1):
            part = word[:end]
            if part not in vocab and len(merges) < want:
                cut = max(k for k in range(1, end) if part[:k] in vocab and part[k:] in vocab)
                merges.append([part[:cut], part[cut:]])
                vocab[part] = len(vocab)
    while len(merges) < want:  # pad with doubled letters
        letter = "etaoinsrhldcumfpgwybvk"[want - len(merges) - 1]
        merges.append([letter, letter])
        vocab[letter * 2] = len(vocab)
    added = [families.added_token(i, n, s) | {"normalized": m} for i, (n, m, s) in enumerate(TINY_FRONT)]
    added += [families.added_token(len(vocab) + i, n, s) | {"normalized": m} for i, (n, m, s) in enumerate(TINY_BACK)]
    data = families.tokenizer_json("deepseek-v3", vocab, merges, added)
    data["post_processor"] = families.BYTES
    config = {"add_bos_token": False, "add_eos_token": False, "bos_token": TINY_FRONT[0][0],
              "eos_token": TINY_FRONT[1][0], "pad_token": TINY_FRONT[2][0]}
    return data, config


def train(byte_level, specials, size):
    model = tokenizers.Tokenizer(models.BPE(unk_token=None if byte_level else "<unk>"))
    if byte_level:
        model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        letters = list(alphabet().values())
    else:
        model.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
        letters = []
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=letters, special_tokens=specials, show_progress=False)
    made = Strings()
    texts = [CORPUS] + [made.make(1, i) for i in range(300)]
    model.train_from_iterator(texts, trainer)
    data = json.loads(model.to_str())["model"]
    merges = [m if isinstance(m, list) else m.split(" ") for m in data["merges"]]
    return data["vocab"], merges


def family(kind):
    byte_level = families.COMPONENTS[kind][2] is families.BYTES
    specials = ["<unk>", "<s>", "</s>"]
    if families.COMPONENTS[kind][3].get("byte_fallback"):
        specials += [f"<0x{b:02X}>" for b in range(256)]
    vocab, merges = train(byte_level, [] if byte_level else specials, 600 if byte_level else 700)
    n = len(vocab)
    added = [families.added_token(n, "<|im_start|>", True), families.added_token(n + 1, "<|im_end|>", True),
             families.added_token(n + 2, "<think>", False) | {"normalized": True},
             families.added_token(n + 3, "<mask>", True) | {"lstrip": True},
             families.added_token(n + 4, "[INST]", False) | {"rstrip": True},
             families.added_token(n + 5, "   ", False), families.added_token(n + 6, "<think>x", False)]
    if not byte_level:
        added = [families.added_token(vocab[t], t, True) for t in ("<unk>", "<s>", "</s>")] + added
    data = families.tokenizer_json(kind, vocab, merges, added)
    if not byte_level:
        data["post_processor"] = families.bos_template("<s>", vocab["<s>"])
    return data


def golden(text, blank, strings):
    oracle = tokenizers.Tokenizer.from_str(text)
    data = json.loads(text)
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] in blank]
    plain = tokenizers.Tokenizer.from_str(json.dumps(data))
    out = {}
    ids = [e.ids for e in oracle.encode_batch(strings, add_special_tokens=True)]
    # The library numbers the added tokens that are left anew.
    ids_of = {plain.token_to_id(content): oracle.token_to_id(content) for content in blank}
    client = [[ids_of.get(i, i) for i in e.ids] for e in plain.encode_batch(strings, add_special_tokens=False)]
    texts = [t.encode() for t in oracle.decode_batch(ids, skip_special_tokens=True)]
    for name, rows in (("template", ids), ("client", client), ("decoded", texts)):
        hashes = [hash_rows(rows[start:start + PER]) for start in range(0, COUNT, PER)]
        out[name] = hashes
    return out


def write(path, data):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1 if "golden" in path.name else None,
                               separators=None if "golden" in path.name else (",", ":")) + "\n")


def main():
    made = Strings()
    strings = [made.make(SEED, i) for i in range(COUNT)]
    data, config = tiny()
    write(HERE / "tiny" / "tokenizer.json", data)
    write(HERE / "tiny" / "tokenizer_config.json", config)
    result = {"made_with": f"tokenizers {tokenizers.__version__}", "seed": SEED, "count": COUNT, "per_hash": PER,
              "families": {"tiny": golden(json.dumps(data), (), strings)}}
    for kind in families.COMPONENTS:
        if kind in ("starcoder", "refact"):  # components of smollm
            continue
        data = family(kind)
        write(HERE / "families" / f"{kind}.json", data)
        result["families"][kind] = golden(json.dumps(data), ("   ",), strings)
    write(HERE / "golden.json", result)


if __name__ == "__main__":
    main()
