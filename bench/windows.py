#!/usr/bin/env python3
"""Whether a recording in windows stands for LMDB at three memory limits, and what such a recording
costs; as root.

    cargo build --release
    pip install lmdb==3.0.0
    python3 bench/windows.py --dir DIRECTORY

LMDB reads its file through a mapping (MADV_RANDOM). Under each limit it runs unrecorded, then
recorded in windows, and its trace is replayed by its own method. Bars: device bytes of the replay
within 5 % of the unrecorded program's, and 99 % of the windows proven. `--costs` instead runs
programs that do nothing but touch pages, or make calls, in turn without and with windows.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"
ITEMS = 100_000
GETS = 100_000
LIMITS = ["48MiB", "64MiB", "96MiB"]

MAKE = """
import lmdb, os, sys
store = lmdb.open(sys.argv[1], map_size=1 << 30, subdir=False)
with store.begin(write=True) as change:
    for number in range(int(sys.argv[2])):
        change.put(number.to_bytes(8, "big"), os.urandom(1000))
store.sync()
"""

# Keys by a zipf distribution of exponent 0.7, scattered over the store.
LOOK_UP = """
import bisect, itertools, lmdb, random, sys
count, gets = int(sys.argv[2]), int(sys.argv[3])
sums = list(itertools.accumulate(1 / (rank + 1) ** 0.7 for rank in range(count)))
draw = random.Random(1)
store = lmdb.open(sys.argv[1], readonly=True, lock=False, subdir=False, readahead=False)
total = 0
with store.begin(buffers=True) as look:
    for _ in range(gets):
        rank = min(bisect.bisect_left(sums, draw.random() * sums[-1]), count - 1)
        total += look.get((rank * 7919 % count).to_bytes(8, "big"))[0]
print(total)
"""

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


def trailer(path):
    data = path.read_bytes()
    return json.loads(data[data.rindex(b'T{"accesses"') + 1 :])


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
            pairs.append((alone, trailer(trace)["program"]["wall_ns"] / 1e9))
            trace.unlink()
        alone, windowed = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(windowed / alone for alone, windowed in pairs)
        print(f"{name:8} {alone:7.2f} s  {windowed:10.2f} s  {ratio:8.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=Path, default=Path("."))
    parser.add_argument("--rounds", type=int, default=3, help="recordings of the program under each limit, of which the medians are taken")
    parser.add_argument("--costs", action="store_true", help="what windows cost a program that touches pages, or makes calls")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        folder = Path(folder)
        if arguments.costs:
            return costs(folder, arguments.rounds)
        store = folder / "store.lmdb"
        run([sys.executable, "-c", MAKE, store, ITEMS])
        os.sync()
        command = [sys.executable, "-c", LOOK_UP, store, ITEMS, GETS]
        print(f"file {store.stat().st_size / 2**20:.0f} MiB, {GETS} gets")
        print("limit    program      replay      ratio  windows proven  in windows, times as long")
        for limit in LIMITS:
            plain, windowed, slower, proven = [], [], [], []
            for number in range(arguments.rounds):
                traces = [folder / f"{limit}-{number}-{kind}.trace" for kind in ("plain", "windows")]
                ends = []
                for trace, more in zip(traces, ([], ["--windows"])):
                    run([PAGEWISE, "record", *more, "--memory", limit, "--cold", store, "-o", trace, "--", *command])
                    ends.append(trailer(trace))
                plain.append(ends[0]["program"]["device_read_bytes"])
                slower.append(ends[1]["program"]["wall_ns"] / ends[0]["program"]["wall_ns"])
                tally = ends[1]["windows"]
                proven.append(tally["proven"] / tally["windows"])
            replayed = run([PAGEWISE, "run", "replay", "--trace", traces[1], "--file", store, "--evict", "--memory", limit,
                            "--methods", "mmap:random", "--rounds", "7", "--no-html", "--json", "--out", folder / f"{limit}.jsonl"])
            judged = json.loads(replayed.stdout)
            own = judged["self_replay"]
            windowed = own["replayed_bytes"]
            real = statistics.median(plain)
            print(f"{limit:7} {real / 1e6:8.1f} MB {windowed / 1e6:8.1f} MB {100 * (windowed / real - 1):+7.1f} %"
                  f"  {100 * min(proven):12.1f} %  {statistics.median(slower):6.1f}", flush=True)
            for trace in traces:
                trace.unlink()


if __name__ == "__main__":
    main()
