#!/usr/bin/env python3
"""Breaks one rule of the V4.1 model at a time and demands that the tests see it.

usage: run.py [--only PATTERN ...] [--folder build/mutation] [--jobs N]
       run.py --check

Copies the working tree into a folder of its own, builds the tests there, and then, for every entry of rules.json, edits
one file of the copy, builds, runs and restores. An entry has a `find` text that must occur exactly once in its file;
`test` and `filter` name another test program and its cases where the goldens of the model cannot see a rule.
A rule is caught if a test fails. A mutant that was never run proves nothing, so these are errors: an edit that does not
apply or does not compile or leaves the program's bytes as they were, a filter with a pattern that matches no test,
a test that fails, is skipped or does not start on the unbroken copy, a run that takes too long, and an --only pattern that matches
no rule. Ends with 0 only if every rule was caught. Takes about a minute a rule; run by hand or nightly, not in .ci/run.
--check only sees to it that every edit still applies to the working tree; it runs with the other tests.
"""
import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TIMEOUT = 1800  # seconds of one test run
TESTS = "tests/model"
KEPT_TESTS = "tests/model/deepseek_v41"
PROGRAM = "model_test"
FILTER = "*FloatGolden.LogitsOfEveryPrompt*:*LayerGolden*:Rules.*"


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

    def compile(self, target):
        """What went wrong, or None. Ninja knows which objects include an edited header."""
        environment = dict(os.environ, CCACHE_BASEDIR=str(self.source), CCACHE_NOHASHDIR="1")
        done = subprocess.run(["ninja", "-C", self.build, "-j", str(self.jobs), target], capture_output=True, text=True,
                              env=environment)
        return None if done.returncode == 0 else "does not compile: " + done.stdout[-3000:]

    def program(self, target):
        return self.build / "tests" / target

    def digest(self, target):
        return hashlib.sha256(self.program(target).read_bytes()).digest()

    def cases(self, target, pattern):
        """Names of the tests of a program that a pattern selects."""
        listed = subprocess.run([self.program(target), "--gtest_list_tests", f"--gtest_filter={pattern}"],
                                cwd=self.source, check=True, capture_output=True, text=True).stdout.splitlines()
        return [line.strip() for line in listed if line.startswith("  ")]

    def test(self, target, cases):
        """("passed" or "failed" or "error", what was seen)."""
        try:
            done = subprocess.run([self.program(target), f"--gtest_filter={cases}", "--gtest_fail_fast"],
                                  cwd=self.source, capture_output=True, text=True, timeout=TIMEOUT, errors="replace")
        except subprocess.TimeoutExpired:
            return "error", f"no end after {TIMEOUT} s"
        lines = done.stdout.splitlines()
        started = [line[12:].strip() for line in lines if line.startswith("[ RUN")]
        skipped = [line for line in lines if line.startswith("[  SKIPPED")]
        failed = [line[13:].split(",")[0] for line in lines if line.startswith("[  FAILED  ]")]
        if not started or (skipped and not failed):
            return "error", f"{len(started)} tests ran, {len(skipped)} were skipped"
        if done.returncode == 0:
            return "passed", f"{len(started)} tests"
        return "failed", failed[0] if failed else f"{started[-1]} ends the program with {done.returncode}"


def edited(root, rule):
    """Text of a rule's file before and after its edit."""
    text = (root / rule["file"]).read_text()
    count = text.count(rule["find"])
    if count != 1:
        raise ValueError(f"{rule['file']} has {count} places like {rule['find']!r}, one is needed")
    if rule["replace"] == rule["find"]:
        raise ValueError("the edit changes nothing")
    return text, text.replace(rule["find"], rule["replace"])


def suite(rule):
    return rule.get("test", PROGRAM), rule.get("filter", FILTER)


def unbroken(tree, suites):
    """Builds and runs every suite on the copy as it is; returns the digest of each program. Exits on any failure."""
    digests = {}
    for target, cases in sorted(suites):
        problem = tree.compile(target)
        for pattern in [] if problem else cases.split(":"):
            if not tree.cases(target, pattern):
                problem = f"the filter {pattern} matches no test"
        if not problem:
            verdict, seen = tree.test(target, cases)
            problem = None if verdict == "passed" else seen
        if problem:
            sys.exit(f"the unbroken tree: {target} {cases}: {problem}")
        print(f"unbroken: {target} {cases}: {seen} pass", flush=True)
        digests[target] = tree.digest(target)
    return digests


def judge(tree, rule, digests):
    path = tree.source / rule["file"]
    target, cases = suite(rule)
    try:
        before, after = edited(tree.source, rule)
    except (OSError, ValueError) as error:
        return "error", str(error)
    try:
        path.write_text(after)
        problem = tree.compile(target)
        if problem:
            return "error", problem
        if tree.digest(target) == digests[target]:
            return "error", f"{target} is the same program, byte for byte"
        verdict, seen = tree.test(target, cases)
        return {"passed": "survived", "failed": "caught"}.get(verdict, verdict), seen
    finally:
        path.write_text(before)


def check(rules):
    """Number of rules that do not apply to the working tree; says which."""
    bad = 0
    for rule in rules:
        try:
            edited(ROOT, rule)
        except (OSError, ValueError) as error:
            bad += 1
            print(f"rule '{rule['rule']}': {error}; change tests/mutation/rules.json with the code it breaks")
    print(f"{len(rules) - bad} of {len(rules)} rules apply")
    return bad


def chosen(rules, patterns):
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(rule["rule"], pattern) for rule in rules):
            sys.exit(f"no rule is called {pattern}")
    return [rule for rule in rules if any(fnmatch.fnmatchcase(rule["rule"], p) for p in patterns)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], help="names of rules, * and ? stand for any text")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true", help="only see whether every edit applies")
    args = parser.parse_args()
    rules = json.loads((HERE / "rules.json").read_text())
    if len({rule["rule"] for rule in rules}) != len(rules):
        sys.exit("two rules have one name")
    rules = chosen(rules, args.only)
    if args.check:
        return 1 if check(rules) else 0

    tree = Tree(args.folder.resolve(), args.jobs)
    digests = unbroken(tree, {suite(rule) for rule in rules})
    count = {"caught": 0, "survived": 0, "error": 0}
    for rule in rules:
        begun = time.time()
        verdict, detail = judge(tree, rule, digests)
        count[verdict] += 1
        print(f"{verdict:8} {rule['rule']}: {detail} ({time.time() - begun:.0f} s)", flush=True)
    print(f"{count['caught']} of {len(rules)} rules caught, {count['survived']} survived, {count['error']} errors")
    return 0 if count["caught"] == len(rules) else 1


if __name__ == "__main__":
    sys.exit(main())
