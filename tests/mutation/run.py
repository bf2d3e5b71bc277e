#!/usr/bin/env python3
"""Breaks one rule of the V4.1 model at a time and demands that the goldens see it.

usage: run.py [--only RULE ...] [--folder build/mutation] [--jobs N]

Copies the working tree into a folder of its own, builds the V4.1 golden tests there, and then, for every entry of
rules.json, edits one file of the copy, builds, runs and restores. An edit has a `find` text that must occur exactly once;
`test` and `filter` name another test program and its cases where the goldens cannot see a rule.
A rule is caught if the tests fail. It is an error if the unbroken copy fails, or an edit does not apply or compile: a
mutant that was never run proves nothing. Takes about a minute a rule; run by hand or nightly, not in .ci/run.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TIMEOUT = 900  # seconds of one test run
TESTS = "tests/model"
KEPT_TESTS = "tests/model/deepseek_v41"
FILTER = "*FloatGolden.LogitsOfEveryPrompt*:*LayerGolden*:*DraftGolden*:*SmallNumbers*"


def copy_tree(to):
    """Files that git knows or would take, changed ones only, so that a second run builds little."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.splitlines()
    wanted = set()
    for name in listed:
        source = ROOT / name
        other_test = name.startswith(TESTS) and not name.startswith(KEPT_TESTS) and name.endswith(".cc")
        if other_test or not source.is_file():
            continue
        wanted.add(name)
        target = to / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    for left in [p for p in to.rglob("*") if p.is_file()]:
        name = str(left.relative_to(to))
        if name not in wanted and not name.startswith("build/"):
            left.unlink()


class Tree:
    def __init__(self, folder, jobs):
        # As deep in the copy as a build folder is in the repository: ccache then knows what was compiled there.
        self.source, self.build, self.jobs = folder / "tree", folder / "tree" / "build" / "mutation", jobs
        self.source.mkdir(parents=True, exist_ok=True)
        copy_tree(self.source)
        configure = ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        if shutil.which("ccache"):
            configure.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)

    def compile(self, target="model_test"):
        environment = dict(os.environ, CCACHE_BASEDIR=str(self.source), CCACHE_NOHASHDIR="1")
        done = subprocess.run(["ninja", "-C", self.build, "-j", str(self.jobs), target], capture_output=True, text=True,
                              env=environment)
        return done.returncode == 0, done.stdout[-3000:]

    def test(self, target="model_test", cases=FILTER):
        """(passed, number of tests run, what failed first)."""
        program = next(p for p in self.build.rglob(target) if p.is_file())
        try:
            done = subprocess.run([program, f"--gtest_filter={cases}", "--gtest_fail_fast"], cwd=self.source,
                                  capture_output=True, text=True, timeout=TIMEOUT, errors="replace")
        except subprocess.TimeoutExpired:
            return False, 1, "timeout"
        lines = done.stdout.splitlines()
        started = sum(line.startswith("[ RUN") for line in lines)
        failed = [line for line in lines if line.startswith("[  FAILED  ]")]
        first = failed[0][13:].split(",")[0] if failed else f"exit status {done.returncode}"
        return done.returncode == 0, started, first


def apply(tree, rule):
    """Returns a function that restores the file."""
    path = tree.source / rule["file"]
    text = path.read_text()
    count = text.count(rule["find"])
    if count != 1:
        raise ValueError(f"{rule['file']} has {count} places like {rule['find']!r}")
    path.write_text(text.replace(rule["find"], rule["replace"]))
    return lambda: path.write_text(text)


def judge(tree, rule):
    try:
        restore = apply(tree, rule)
    except (OSError, ValueError) as error:
        return "error", str(error)
    try:
        target = rule.get("test", "model_test")
        built, output = tree.compile(target)
        if not built:
            return "error", "does not compile: " + output
        passed, started, first = tree.test(target, rule.get("filter", FILTER))
        if passed:
            return "survived", f"{started} tests passed"
        return "caught", first
    finally:
        restore()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    rules = json.loads((HERE / "rules.json").read_text())
    names = [rule["rule"] for rule in rules]
    assert len(set(names)) == len(names), "two rules have one name"
    if args.only:
        unknown = set(args.only) - set(names)
        assert not unknown, f"no such rule: {unknown}"
        rules = [rule for rule in rules if rule["rule"] in args.only]

    tree = Tree(args.folder.resolve(), args.jobs)
    built, output = tree.compile()
    if not built:
        sys.exit("the unbroken tree does not build:\n" + output)
    passed, started, first = tree.test()
    if not passed or started == 0:
        sys.exit(f"the unbroken tree fails: {first} ({started} tests run)")
    print(f"unbroken: {started} tests pass", flush=True)

    count = {"caught": 0, "survived": 0, "error": 0}
    for rule in rules:
        begun = time.time()
        verdict, detail = judge(tree, rule)
        count[verdict] += 1
        print(f"{verdict:8} {rule['rule']}: {detail} ({time.time() - begun:.0f} s)", flush=True)
    print(f"{count['caught']} of {len(rules)} rules caught, {count['survived']} survived, {count['error']} errors")
    return 0 if count["caught"] == len(rules) else 1


if __name__ == "__main__":
    sys.exit(main())
