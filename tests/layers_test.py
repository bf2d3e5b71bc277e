#!/usr/bin/env python3
"""Compares every #include of src/ with the layer order: a folder may include only itself and what stands before it."""
import pathlib
import re
import sys

# Folders of one row may not include each other.
ORDER = [["base"], ["tensor"], ["files"], ["text"], ["runtime"], ["kernels", "comm", "weights"], ["kv", "grammar"],
         ["sample"], ["draft"], ["model", "sched"], ["engine", "plan"], ["net"], ["server", "client", "router"], ["cli"]]
RANK = {folder: rank for rank, row in enumerate(ORDER) for folder in row}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def allowed(folder, file, target):
    to = target.split("/")[0]
    if to == folder:
        return True
    if folder == "net":
        return to == "base"
    if folder == "sched" and target.startswith("kv/store/"):
        return False
    return to in RANK and RANK[to] < RANK[folder]


def violations(root):
    for file in sorted(p for p in root.rglob("*") if p.suffix in {".h", ".cc", ".cu", ".cuh"}):
        folder = file.relative_to(root).parts[0]
        if folder not in RANK:
            yield f"{file}: folder '{folder}' has no place in the layer order"
            continue
        for target in INCLUDE.findall(file.read_text()):
            if not allowed(folder, file, target):
                yield f"{file}: '{folder}' may not include \"{target}\""


def main():
    assert not allowed("base", "x", "tensor/view.h") and not allowed("sched", "x", "kv/store/kv_spec.h")
    assert allowed("model", "x", "kernels/linear.h") and not allowed("kernels", "x", "comm/local/local.h")
    bad = list(violations(pathlib.Path(__file__).resolve().parent.parent / "src"))
    print("\n".join(bad) or "every #include points left")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
