#!/usr/bin/env python3
"""How often the gate of docs/recipes/gate.sh catches a worker that is slower by 10 %, and how often
it fails for equal ones.

    cargo build --release
    python3 bench/gate.py --slow 10 --equal 20

workers/c/minimal.c is built as it is, and once with a spin after each operation (bench/slowed.py).
Each gate measures eight runs of each side in turn. Prints a line for each gate; exit status 1 if a
slow build passed or an equal one failed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from slowed import build

GATE = Path(__file__).resolve().parent.parent / "docs/recipes/gate.sh"


def gate(arguments, folder, base, new):
    path = f"{Path(arguments.pagewise).parent}:{os.environ['PATH']}"
    began = time.monotonic()
    ended = subprocess.run(["sh", GATE, base, new, folder / "gate"], cwd=folder, capture_output=True, text=True,
                           env={**os.environ, "PATH": path, "RUNS": str(arguments.runs)})
    took = time.monotonic() - began
    shutil.rmtree(folder / "gate", ignore_errors=True)
    if ended.returncode not in (0, 1):
        sys.exit(f"gate.sh: {ended.returncode}: {ended.stderr}")
    seen = [line.strip() for line in ended.stdout.splitlines() if line.strip().startswith("build/get")]
    return ended.returncode == 1, took, seen[0] if seen else ended.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow", type=int, default=10, help="gates of a slow build")
    parser.add_argument("--equal", type=int, default=20, help="gates of an equal build")
    parser.add_argument("--slowed", type=int, default=10, help="per cent")
    parser.add_argument("--runs", type=int, default=8, help="of each side")
    parser.add_argument("--pagewise", default=str(GATE.parents[2] / "target/release/pagewise"))
    parser.add_argument("--dir", default=".", help="folder for the files")
    arguments = parser.parse_args()
    arguments.pagewise = os.path.abspath(arguments.pagewise)
    caught, alarms = 0, 0
    with tempfile.TemporaryDirectory(dir=arguments.dir, prefix=".gate-") as folder:
        folder = Path(folder).resolve()
        programs = {slowed: build(folder, slowed) for slowed in (0, arguments.slowed)}
        for number in range(max(arguments.slow, arguments.equal)):
            for slowed, most in ((arguments.slowed, arguments.slow), (0, arguments.equal)):
                if number >= most:
                    continue
                failed, took, seen = gate(arguments, folder, programs[0], programs[slowed])
                caught += failed and slowed > 0
                alarms += failed and slowed == 0
                print(f"{slowed} % slower: {'failed' if failed else 'passed'} in {took:.0f} s: {seen}", flush=True)
    print(f"caught {caught} of {arguments.slow}, false alarms {alarms} of {arguments.equal}")
    return int(caught < arguments.slow or alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
