#!/usr/bin/env python3
"""What a recording in windows costs: programs that do nothing but touch pages, or make calls, in
turn without and with windows.

    cargo build --release
    python3 bench/windows.py --dir DIRECTORY

Bar: three times as long. replay.py has programs that are recorded so.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import traces

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"

# A file that is in memory, and 2,000,000 touches of its pages at random, each with some work in
# between; or 100,000 reads by calls.
COSTS = {
    "touches": """
import mmap, random, sys
with open(sys.argv[1], "rb") as file:
    pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    draw = random.Random(1)
    print(sum(pages[draw.randrange(len(pages))] for _ in range(2_000_000)))
""",
    "calls": """
import os, random, sys
file = os.open(sys.argv[1], os.O_RDONLY)
size, draw = os.fstat(file).st_size, random.Random(1)
print(sum(len(os.pread(file, 100, draw.randrange(size - 100))) for _ in range(100_000)))
""",
}


def run(words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode not in (0, 1):
        sys.exit(f"{words}: ended with {done.returncode}\n{done.stderr}")
    return done


def costs(folder, rounds):
    data = folder / "data.bin"
    data.write_bytes(os.urandom(64 << 20))
    print("program   alone       in windows  times as long, median of pairs")
    for name, program in COSTS.items():
        command = [sys.executable, "-c", program, data]
        pairs = []
        for number in range(rounds):
            began = time.monotonic()
            run(command)
            alone = time.monotonic() - began
            trace = folder / f"{name}-{number}.trace"
            run([PAGEWISE, "record", "--windows", "-o", trace, "--", *command])
            pairs.append((alone, traces.trailer(trace)["program"]["wall_ns"] / 1e9))
            trace.unlink()
        alone, windowed = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(windowed / alone for alone, windowed in pairs)
        print(f"{name:8} {alone:7.2f} s  {windowed:10.2f} s  {ratio:8.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=Path, default=Path("."))
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs, of which the medians are taken")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        costs(Path(folder), arguments.rounds)


if __name__ == "__main__":
    main()
