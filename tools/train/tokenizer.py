"""Gannet-mini's tokenizer: DeepSeek's byte-level BPE and control tokens at 8192 entries, and the Engram token map.

    tokenizer.py --texts DIR --out DIR
"""
import argparse
import json
import os
import re
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

VOCAB = 8192
HEAD = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"]
SPECIAL_TAIL = ["<｜System｜>"]                       # also the noise token of the draft's blocks, which never reaches text
TAIL = ["<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>", "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", "｜DSML｜",
        "<｜latest_reminder｜>", "<｜action｜>", "<｜query｜>", "<｜authority｜>", "<｜domain｜>", "<｜title｜>", "<｜read_url｜>",
        "<｜deepseek_image｜>"]
SPLIT = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
         r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")


def pre_tokenizer():
    P = pre_tokenizers
    return P.Sequence([P.Split(Regex(r"\p{N}{1,3}"), "isolated"), P.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
                       P.Split(Regex(SPLIT), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(texts):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizer(), decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCAB - len(SPECIAL_TAIL) - len(TAIL), special_tokens=HEAD, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in SPECIAL_TAIL])
    t.add_tokens([AddedToken(s, normalized=True, special=False) for s in TAIL])
    assert t.get_vocab_size() == VOCAB
    return t


# ---- the Engram token map ------------------------------------------------------------------------------------------
WHITE = "".join(map(chr, [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F,
                          0x3000]))


def byte_alphabet():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in keep]
    return {chr(b): b for b in keep} | {chr(256 + i): b for i, b in enumerate(rest)}


def normalise(text):
    s = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    s = "".join(c.lower() for c in s if not unicodedata.category(c).startswith("M"))
    s = re.sub(r"[ \t\r\n]+", " ", s)
    return " " if s == " " else s.strip(WHITE)


def token_map(t):
    """Class of every id: ids whose text is equal after normalising share one, numbered by first appearance."""
    back, ids, out = byte_alphabet(), {}, []
    for i in range(t.get_vocab_size()):
        raw = t.id_to_token(i)
        text = bytes(back[c] for c in raw).decode("utf-8", "replace") if all(c in back for c in raw) else raw
        key = raw if "\ufffd" in text else normalise(text) or text
        out.append(ids.setdefault(key, len(ids)))
    return out


def save(t, out, max_length):
    os.makedirs(out, exist_ok=True)
    t.save(f"{out}/tokenizer.json")
    json.dump(dict(tokenizer_class="LlamaTokenizerFast", add_bos_token=True, add_eos_token=False, bos_token=HEAD[0],
                   eos_token=HEAD[1], pad_token=HEAD[2], unk_token=None, model_max_length=max_length,
                   clean_up_tokenization_spaces=False), open(f"{out}/tokenizer_config.json", "w"), indent=1,
              ensure_ascii=False)
    json.dump(dict(_from_model_config=True, bos_token_id=0, eos_token_id=1, do_sample=True, temperature=0.8, top_p=0.95),
              open(f"{out}/generation_config.json", "w"), indent=1)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--texts", required=True, help="folder of data.py texts")
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    import data
    tok = train(data.tokenizer_sample(a.texts))
    save(tok, a.out, 1024)
    print(tok.get_vocab_size(), "tokens,", max(token_map(tok)) + 1, "classes; noise token", tok.token_to_id(SPECIAL_TAIL[0]))
