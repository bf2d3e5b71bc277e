#!/usr/bin/env python3
"""Writes docs/where.md: every header of src/ with its subject, its code and its tests; ops, flags, routes, request fields.

usage: where.py          write it
       where.py --check  end with 1 if the tree no longer agrees with it (a test)
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "where.md"
SUBJECT_LENGTH = 150
INTRO = """# Where to find it

Written by `tools/where.py` from the tree itself; a test compares. Run the script after a header, an op, a flag or a
request field comes or goes. `docs/architecture.md` says how the folders depend on each other, `docs/glossary.md` what the words mean.

"""


def read(path):
    return (ROOT / path).read_text()


def tree(folder, suffixes):
    """Sorted paths below a folder, relative to the repository."""
    found = [p.relative_to(ROOT).as_posix() for p in (ROOT / folder).rglob("*") if p.suffix in suffixes]
    return sorted(found)


def subject(header):
    """First sentence of a header's first comment, cut to a length that a table bears."""
    lines = []
    for line in read(header).splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    if not lines:
        sys.exit(f"{header} does not begin with a comment that says what it is")
    text = " ".join(lines)
    sentence = re.match(r"(.*?[.:])(?:\s|$)(?![a-z0-9])", text)
    text = (sentence.group(1) if sentence else text).rstrip(".:").replace("|", "\\|")
    return text if len(text) <= SUBJECT_LENGTH else text[:text.rindex(" ", 0, SUBJECT_LENGTH)] + " ..."


def links(paths, base):
    """Paths, shortened to what follows `base`."""
    return ", ".join(f"`{os.path.relpath(p, base)}`" for p in paths)


def includes_of(paths):
    return {p: set(re.findall(r'#include "([^"]+)"', read(p))) for p in paths}


def belongs(code, header):
    """row_codec.cc, linear_avx2.cc belong to row_codec.h, linear.h of the same folder."""
    stem, folder = header[:-2], os.path.dirname(header)
    return os.path.dirname(code) == folder and (code.rsplit(".", 1)[0] == stem or code.startswith(stem + "_"))


def headers_section():
    code = tree("src", {".cc", ".cu", ".cuh"})
    headers = tree("src", {".h"})
    tests = includes_of([t for t in tree("tests", {".cc", ".cu"}) if t.startswith("tests/") and "/fuzz/" not in t])
    fuzz = includes_of(tree("tests/fuzz", {".cc"}))
    owner = {}
    for c in code:  # the header with the longest name that fits
        fitting = [h for h in headers if belongs(c, h)]
        owner[c] = max(fitting, key=len) if fitting else None
    out = ""
    for folder in sorted({os.path.dirname(p) for p in headers + code}):
        out += f"## {folder}\n\n| header | holds | code | tests |\n|---|---|---|---|\n"
        for header in [h for h in headers if os.path.dirname(h) == folder]:
            name = header[len("src/"):]
            own = [c for c in code if owner[c] == header]
            used = [t for t, inc in {**tests, **fuzz}.items() if name in inc and t.endswith(("_test.cc", "_fuzz.cc"))]
            out += f"| `{os.path.basename(header)}` | {subject(header)} | {links(own, folder)} | {links(used, 'tests')} |\n"
        alone = [c for c in code if owner[c] is None and os.path.dirname(c) == folder]
        if alone:
            out += f"\nwithout a header of that name: {links(alone, folder)}\n"
        out += "\n"
    return out


def ops_section():
    """Contract, reference, variants, test and bench of every op: files that name the op's header."""
    out = "## Ops\n\n| contract | reference | faster variants | tests | bench |\n|---|---|---|---|---|\n"
    code = includes_of(tree("src/kernels", {".cc", ".cu"}))
    tests, benches = includes_of(tree("tests/kernels", {".cc"})), includes_of(tree("bench", {".cc", ".cu"}))
    for reference in tree("src/kernels/ref", {".cc"}):
        op = os.path.basename(reference)[:-len("_ref.cc")]
        contract = f"kernels/{op}.h"
        if not (ROOT / "src" / contract).is_file():
            sys.exit(f"{reference} has no contract src/{contract}")
        fast = [p for p, inc in code.items() if contract in inc and re.match(r"src/kernels/(cpu|cuda)/", p)]
        test = [p for p, inc in tests.items() if contract in inc]
        bench = [p for p, inc in benches.items() if contract in inc]
        out += (f"| `{op}.h` | `{os.path.basename(reference)}` | {links(fast, 'src/kernels')} | {links(test, 'tests')} "
                f"| {links(bench, 'bench')} |\n")
    return out + "\n"


def names_by_file(title, paths, patterns):
    out = f"## {title}\n\n| names | file |\n|---|---|\n"
    for path in paths:
        names = sorted({n for p in patterns for n in re.findall(p, read(path))})
        if names:
            out += f"| {' '.join(f'`{n}`' for n in names)} | `{path}` |\n"
    return out + "\n"


def text():
    cli, server = tree("src/cli", {".cc"}), tree("src/server", {".cc"})
    readers = server + [p for p in tree("src/text", {".cc"}) if "/chat_openai" in p]
    return (INTRO + ops_section() +
            names_by_file("Flags", cli, [r'add_(?:option|flag)\(\s*"([^"]+)"']) +
            names_by_file("Routes", server, [r'path\s*==\s*"(/[^"]*)"', r'path\.starts_with\("(/[^"]*)"\)']) +
            names_by_file("Request fields", readers,
                          [r'(?:_field|read_ids|optional_\w+)\(\s*[*\w.]+,\s*"(\w+)"',
                           r'\b(?:body|request|object|options|message|json|tool|call|function|part|\w*json)(?:\.|->)find\("(\w+)"\)']) +
            headers_section()).rstrip() + "\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    fresh = text()
    if sys.argv[1:] == []:
        TARGET.write_text(fresh)
        return 0
    if TARGET.is_file() and TARGET.read_text() == fresh:
        print(f"{TARGET.relative_to(ROOT)} agrees with the tree")
        return 0
    print(f"{TARGET.relative_to(ROOT)} no longer agrees with the tree: run python3 tools/where.py and commit the file")
    return 1


if __name__ == "__main__":
    sys.exit(main())
