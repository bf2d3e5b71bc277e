#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/tokenizer_json/: one small tokenizer.json with the components of each family."""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "golden" / "tokenizer"))
import families

OUT = HERE / "corpus" / "tokenizer_json"
OUT.mkdir(parents=True, exist_ok=True)
for kind, (_, _, decoder, _) in families.COMPONENTS.items():
    blank = "Ġ" if decoder is families.BYTES else families.MARK
    tokens = ["<unk>", "<s>", "a", "b", "t", "h", "1", "é", blank, "<0x41>", "ab", "th", blank + "a"]
    merges = [["a", "b"], ["t", "h"], [blank, "a"]]
    added = [families.added_token(0, "<unk>", True), families.added_token(1, "<s>", True),
             families.added_token(13, "<x>", False) | {"normalized": True, "lstrip": True, "single_word": True}]
    data = families.tokenizer_json(kind, {t: i for i, t in enumerate(tokens)}, merges, added)
    data["post_processor"] = families.bos_template("<s>", 1)
    (OUT / f"{kind}.json").write_text(json.dumps(data, ensure_ascii=False))
print(len(families.COMPONENTS), "seeds in", OUT)
