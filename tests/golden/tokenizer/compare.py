"""Compares our tokenizer with the `tokenizers` library on random and adversarial strings: ids of template text, ids of
client text (no added token may match), and text decoded from ids.

    compare.py TOOL --work FOLDER [--count 20000] NAME=MODEL[:kind] ...

MODEL is a tokenizer.json, or a GGUF file, which the tool reads itself and the library as a tokenizer.json made from it.
Needs tokenizers 0.23.3 and, for GGUF, gguf. Exit status 1 when anything differs."""
import argparse
import json
import pathlib
import struct
import subprocess
import sys

import tokenizers

import families
from strings import Strings


def run_tool(tool, model, requests):
    data = b"".join(op.encode() + struct.pack("<I", len(body)) + body for op, body in requests)
    done = subprocess.run([tool, str(model)], input=data, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{tool} {model}: status {done.returncode}: {done.stderr.decode()}")
    replies, at = [], 0
    while at < len(done.stdout):
        (size,) = struct.unpack_from("<I", done.stdout, at)
        replies.append(done.stdout[at + 4:at + 4 + size])
        at += 4 + size
    assert len(replies) == len(requests), (len(replies), len(requests))
    return replies


def ids_of(reply):
    return list(struct.unpack(f"<{len(reply) // 4}i", reply))


def report(what, text, got, want):
    print(f"  {what} differs on {text!r}\n    ours   {got}\n    oracle {want}")


def without_added(text, oracle):
    """The same tokenizer with no added token but those that are white space."""
    data = json.loads(text)
    blank = lambda t: not t["special"] and oracle.decode([t["id"]], skip_special_tokens=False).isspace()
    data["added_tokens"] = [t for t in data["added_tokens"] if blank(t)]
    plain = tokenizers.Tokenizer.from_str(json.dumps(data))
    # The library numbers added tokens that the model lacks anew.
    return plain, {plain.token_to_id(t["content"]): oracle.token_to_id(t["content"]) for t in data["added_tokens"]}


def compare(tool, name, model, text, count):
    oracle = tokenizers.Tokenizer.from_str(text)
    plain, renamed = without_added(text, oracle)
    names = [t.content for t in oracle.get_added_tokens_decoder().values()]
    made = Strings(extra=names[:40] + names[-40:])
    strings = [made.make(7, i) for i in range(count)]
    want_e = [e.ids for e in oracle.encode_batch(strings, add_special_tokens=False)]
    want_b = [e.ids for e in oracle.encode_batch(strings[:1000], add_special_tokens=True)]
    want_c = [[renamed.get(i, i) for i in e.ids] for e in plain.encode_batch(strings, add_special_tokens=False)]
    # An added token of Latin-1 letters is decoded by the library as bytes of the GPT-2 alphabet, so as U+FFFD; we give
    # back its content.
    latin = {i for i, t in oracle.get_added_tokens_decoder().items() if not t.content.isascii() and max(t.content) < "\u0144"}
    decodes = [ids for ids in want_e if ids and not latin & set(ids)]
    requests = [("e", s.encode()) for s in strings] + [("c", s.encode()) for s in strings]
    requests += [("b", s.encode()) for s in strings[:1000]]
    packed = [struct.pack(f"<{len(ids)}i", *ids) for ids in decodes]
    requests += [("d", p) for p in packed] + [("k", p) for p in packed]
    replies = run_tool(tool, model, requests)
    n_ids = sum(map(len, want_e))
    differences = 0
    at = 0
    for what, texts, want in (("template", strings, want_e), ("client", strings, want_c), ("special", strings, want_b)):
        for s, w in zip(texts, want):
            got = ids_of(replies[at])
            at += 1
            if got != w:
                differences += 1
                if differences <= 5:
                    report(what, s, got, w)
    for what, skip in (("decode", False), ("decode_skip", True)):
        for ids, w in zip(decodes, oracle.decode_batch(decodes, skip_special_tokens=skip)):
            got = replies[at].decode()
            at += 1
            if got != w:
                differences += 1
                if differences <= 5:
                    report(what, ids, repr(got), repr(w))
    print(f"{name}: {count} strings, {n_ids} ids, {at} comparisons, {differences} differences", flush=True)
    return differences


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=20000)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    differences = 0
    for entry in args.models:
        name, _, path = entry.partition("=")
        path, _, kind = path.partition(":")
        if path.endswith(".gguf"):
            model = path
            text = families.from_gguf(path, kind or None)
            if kind:  # a vocabulary whose GGUF form we do not read
                model = args.work / f"{name}.json"
                model.write_text(text)
        else:
            text = pathlib.Path(path).read_text()
            if kind == "v41":
                text = families.rename_to_v41(text)
            elif kind == "ignore_merges":
                data = json.loads(text)
                data["model"]["ignore_merges"] = True
                text = json.dumps(data)
            model = args.work / f"{name}.json"
            model.write_text(text)
        differences += compare(args.tool, name, model, text, args.count)
        if path.endswith(".gguf") and not kind:  # the same vocabulary through our reader of tokenizer.json
            model = args.work / f"{name}.json"
            model.write_text(text)
            differences += compare(args.tool, name + "/json", model, text, args.count)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
