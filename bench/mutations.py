#!/usr/bin/env python3
"""Turns off one check of proof after another, and looks whether a test without a machine fails
then.

    python3 bench/mutations.py

A check that can be turned off without a red test is held by nothing: its sample would be valid, and
no contributor would know. Prints a table for bench/RESULTS.md; exit status 1 if a check is held by
no test. `--word TEXT` tries only checks whose names contain it.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "checks"))
import tests  # noqa: E402

CHECKS = ROOT / "crates" / "analysis" / "src" / "proof" / "checks.rs"
ENTRY = re.compile(r"\(\s*FailureKind::(\w+),\s*(?:TimedPart::\w+,\s*)?([\w:]+),?\s*\)")


def checks():
    """The kind and the function of each check, in the order of both lists."""
    lists = CHECKS.read_text().split("const TIMED_CHECKS", 1)[1].split("pub fn failures", 1)[0]
    found = ENTRY.findall(lists)
    if len(found) != lists.count("(FailureKind::"):
        sys.exit(f"mutations: {CHECKS} has lists of another form than this reads")
    return found


def program():
    """The unit tests of the crate that judges."""
    return next(program.path for program in tests.build() if program.name == "pagewise-analysis/pagewise_analysis")


def failing(path, off):
    """The tests of proof that fail with this check turned off; None: no check."""
    environment = {**os.environ, **({} if off is None else {"PAGEWISE_CHECK_OFF": str(off)})}
    ran = subprocess.run([path, "proof::"], cwd=CHECKS.parent, env=environment, capture_output=True, text=True)
    failed = re.findall(r"^test (\S+) \.\.\. FAILED$", ran.stdout, re.MULTILINE)
    if bool(failed) != (ran.returncode != 0):
        sys.exit(f"mutations: the tests end with {ran.returncode}: {ran.stderr[-500:]}")
    return failed


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--word", default="", help="only checks whose names contain it")
    word = arguments.parse_args().word
    path, all_checks = program(), checks()
    if red := failing(path, None):
        sys.exit(f"mutations: without a mutation these tests fail already: {', '.join(red)}")
    print("| check | kind | tests that fail without it |\n| --- | --- | --- |")
    held_by_none = []
    for position, (kind, name) in enumerate(all_checks):
        if word not in name:
            continue
        red = failing(path, position)
        print(f"| {name} | {kind} | {len(red)} |", flush=True)
        if not red:
            held_by_none.append(f"{name} ({kind})")
    print(f"\n{len(all_checks)} checks; held by no test: {', '.join(held_by_none) or 'none'}")
    return 1 if held_by_none else 0


if __name__ == "__main__":
    sys.exit(main())
