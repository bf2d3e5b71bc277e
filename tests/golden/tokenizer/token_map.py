"""Engram's compressed token map by the `tokenizers` library's own normalizers, the oracle of src/text/token_map.cc.

    token_map.py                          writes token_map.json, which the tests read
    token_map.py TOOL TOKENIZER.json N    compares TOOL TOKENIZER.json --map N with it
"""
import json
import pathlib
import subprocess
import sys

import tokenizers
from tokenizers import Regex, normalizers

HERE = pathlib.Path(__file__).resolve().parent
FOLD = normalizers.Sequence([
    normalizers.NFKC(), normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(),
    normalizers.Replace(Regex(r"[ \t\r\n]+"), " "), normalizers.Replace(Regex(r"^ $"), "\ue000"),
    normalizers.Strip(), normalizers.Replace("\ue000", " ")])


def compressed(text, n):
    tokenizer = tokenizers.Tokenizer.from_str(text)
    seen, out = {}, []
    for i in range(n):
        decoded = tokenizer.decode([i], skip_special_tokens=False)
        key = tokenizer.id_to_token(i) if "\ufffd" in decoded else FOLD.normalize_str(decoded) or decoded
        out.append(seen.setdefault(key, len(seen)))
    return out, len(seen)


def main():
    if len(sys.argv) == 4:
        want, count = compressed(pathlib.Path(sys.argv[2]).read_text(), int(sys.argv[3]))
        done = subprocess.run([sys.argv[1], sys.argv[2], "--map", sys.argv[3]], capture_output=True, check=True)
        got = [int(line) for line in done.stdout.split()]
        wrong = sum(a != b for a, b in zip(got, want, strict=True))
        print(f"{len(got)} ids, oracle {count} compressed, ours {max(got) + 1}, {wrong} differences")
        sys.exit(1 if wrong else 0)
    maps = {name: compressed((HERE / file).read_text(), n)[0]
            for name, file, n in (("tiny", "tiny/tokenizer.json", 320),
                                  ("families/deepseek-v3.json", "families/deepseek-v3.json", 600))}
    result = {"made_with": f"tokenizers {tokenizers.__version__}", "maps": maps}
    (HERE / "token_map.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
