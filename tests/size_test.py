#!/usr/bin/env python3
"""Holds the sizes of the house style: no file over 500 lines, no C++ function over 60 (device code and its launches 150)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["src", "apps", "tests", "bench", "tools"]
SOURCE = {".h", ".cc", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".js", ".css", ".html", ".cmake"}
FILE_LINES, FUNCTION_LINES, DEVICE_LINES = 500, 60, 150

# What may be longer, and why. An entry that no longer is longer must go: the test says so.
LONG_FILES = {}
LONG_FUNCTIONS = {
    "tests/kv/index/prefix_index_test.cc TEST": "random operations share the state of the naive model; not split yet",
    "tests/sched/scheduler_test.cc run_case": "random operations share the requests in flight; not split yet",
}

# Comments, and literals that may hold braces; newlines stay, so that lines can be counted.
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*',
                   re.S | re.M)
# A brace that opens a scope whose functions count one by one.
SCOPE = re.compile(r'^(?:template\s*<.*>\s*)?(?:inline\s+)?(?:typedef\s+)?(?:namespace|class|struct|union|enum|extern)\b', re.S)
NAME = re.compile(r'([~\w:]+(?:\s*operator\s*[^\s(]+)?)\s*\(')


def functions(text):
    """(name, first line, number of lines) of every function with a body, without what is nested in one."""
    clean = NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    head, i, line, depth = 0, 0, 1, 0
    while i < len(clean):
        c = clean[i]
        if c == "\n":
            line += 1
        elif c in ";}" or (c == ":" and re.search(r"\b(public|private|protected)\s*$", clean[head:i])):
            head = i + 1
        elif c == "{":
            opening = clean[head:i].strip()
            is_scope = SCOPE.match(opening) and not opening.endswith(")") and "=" not in opening.split("<")[0]
            if is_scope or opening == "":
                head = i + 1
            else:  # a body or an initialiser: to its end
                start_line = line - clean[head:i].lstrip().count("\n")
                depth, end = 1, i + 1
                while depth and end < len(clean):
                    depth += {"{": 1, "}": -1}.get(clean[end], 0)
                    end += 1
                lines = clean.count("\n", i, end)
                name = NAME.search(opening)
                rest = clean[end:end + 200].lstrip()[:1]
                is_body = name and not re.search(r"=\s*$|\breturn\b", opening) and rest not in {",", "{"}
                if is_body:
                    yield name.group(1), start_line, line + lines - start_line + 1
                line += lines
                i = end
                if is_body:
                    head = end
                continue
        i += 1


def sources(suffixes):
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "corpus" not in path.parts:
                yield path


def findings():
    files, bodies = set(LONG_FILES), set(LONG_FUNCTIONS)
    for path in sources(SOURCE | SCRIPTS):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text()
        n = text.count("\n")
        if n > FILE_LINES and name in files:
            files.remove(name)
        elif n > FILE_LINES:
            yield f"{name} has {n} lines, at most {FILE_LINES}"
        if path.suffix not in SOURCE:
            continue
        limit = DEVICE_LINES if path.suffix in {".cu", ".cuh"} else FUNCTION_LINES
        for function, first, n in functions(text):
            key = f"{name} {function}"
            if n > limit and key in LONG_FUNCTIONS:
                bodies.discard(key)
            elif n > limit:
                yield f"{name}:{first}: {function} has {n} lines, at most {limit}"
    for stale in sorted(files | bodies):
        yield f"{stale} is on the list of what may be long, and is not"


def self_test():
    text = '''namespace a { // {
class B : public C {
 public:
  B() : x_{1}, y_(2) {
    f();
  }
  int size() const { return 1; }
};
const char* kText = R"(} {{)";
constexpr int kTable[] = {
  1, f(2),
};
template <class T>
Result<int> B::long_one(
    int a) {
  if (a) {
    auto g = [&] { return '{'; };
  }
}
}
TEST(A, B) {
  x();
}
'''
    want = [("B", 4, 3), ("size", 7, 1), ("B::long_one", 13, 7), ("TEST", 21, 3)]
    found = list(functions(text))
    assert found == want, found


def main():
    self_test()
    bad = list(findings())
    print("\n".join(bad) or "every file and function is within its size")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
