"""Writes fragments.json. Needs a Python whose unicodedata is Unicode 14.0 (3.11)."""
import json
import pathlib
import unicodedata

assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version

ranges = []
for c in range(0x110000):
    if unicodedata.category(chr(c)) in ("Cn", "Cs", "Co"):
        continue
    if ranges and ranges[-1][1] == c - 1 and c & 0xFF:
        ranges[-1][1] = c
    else:
        ranges.append([c, c])

fragments = (
    "the quick brown fox Jumps over LAZY dogs don't you'll I'M we've they're 'S 'T 'RE 'LL 'D 'm 's 't hello Hello world "
    "int return def class self.x i++ == != -> => <= // /* */ #include https://example.com/a?b=c&d=e f(x) a[i] {} [] () \\n "
    "0 1 9 12 123 1234 3.14159 1,000,000 1e-9 0xFF x1 v2 naïve café Straße ŒUVRE Ärger İstanbul ſ 'ſ ß ﬁ ǅ ʔ Ⅷ ½ ² ① ٣ "
    "你好 世界 日本語 テキスト ひらがな 龥 龦 한국어 조선말 Сказка ПРИВЕТ Ελληνικά שלום مرحبا नमस्ते ไทย ₽ € $ £ ¥ + < > ^ ~ | ` "
    "😀 👍🏽 👨‍👩‍👧 🇩🇪 🫠 🥹 … — – “ ” ‘ ’ « » ， 。 ！ ？ 、 ； ： （ ） 【 】 ・ ー 々 〆 "
    "_ __ - -- --- . .. ... ! !! ? , ; : ' \" '' <think> </think> <s> </s> <unk> <0x0A> <0x80> ▁ ▁▁ Ġ Ċ ģ ĠĠ <|im_start|> "
    "<|im_end|> <|endoftext|> <|eot_id|> <｜User｜> <｜Assistant｜> ｜DSML｜ <mask> [INST] "
    "e\u0301 \u0301 \u0327\u0301 a\u0323\u0302 \u1100\u1161\u11a8 \uac00\u11a8 \u0338 \u0958 \u2126 \u212b \u0f71\u0f72 \u200d \u200b \ufeff"
).split(" ")
fragments += [" ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", " \t ", "\x0b", "\x0c", "\x85",
              "\u00a0", "\u2003", "\u2028", "\u2029", "\u3000", "\u1680", "\u202f", "\x00", "\x01", "\x1c", "\x7f"]
path = pathlib.Path(__file__).resolve().parent / "fragments.json"
path.write_text(json.dumps({"fragments": fragments, "ranges": ranges}, separators=(",", ":")) + "\n")
print(len(fragments), "fragments", len(ranges), "ranges", path.stat().st_size, "bytes")
