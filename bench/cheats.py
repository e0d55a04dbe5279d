#!/usr/bin/env python3
"""Workers that cheat under pagewise's own names, each in turn with its honest twin: is what they
claim believed, and does it gain?

    cargo build --release --examples --bins
    python3 bench/cheats.py --rounds 10

A family is a way to look faster than one is. Each is tried on the smallest work that its question
takes and on larger work, for every method that it can pretend to be. Runs of the honest twin, of
the same once more as a control, and of its cheats take turns, in a new order each time. The figure
of a sample is its rate of reads, or one over the total of one-shot work. The ratio is the median
figure of the valid samples of the cheat over that of its twin, with a bootstrap interval of 95 %
over runs. A cheat of which no sample is valid has none.

Prints a table for bench/RESULTS.md; exit status 1 if a cheat gains more than 2 %: the whole
interval is above 1.02.
"""

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BAR = 1.02
# The honest twin once more: what the machine does to a ratio.
CONTROL = "(honest)"
COMMON = ["--trial-rounds=4", "--no-ceilings", "--threads=1"]
READ = ["read", "--workload=random-read", "--cache=warm", "--seed=7", "--sample=100ms"]
# Half of it is within the 10 ms by which clocks may differ.
READ_SHORT = [*READ[:-1], "--sample=18ms"]
ONCE = ("before-ready", "after-ready", "understates", "halves")


def once(question, size, methods):
    words = {
        "append": ["append", "--record-size=4KiB", "--passes=1", "--sync=none"],
        "fill": ["fill", "--block-size=4KiB"],
        "scan": ["scan", "--consume=lines", "--cache=warm"],
    }[question]
    return [*words, f"--file-size={size}", f"--methods={methods}"]


# Family, worker, its cheats, the question.
FAMILIES = [
    *[(f"short one-shot work: append, {size}", "cheating_once_worker", ONCE, once("append", size, "pwrite,mmap"))
      for size in ("1MiB", "8MiB", "64MiB")],
    *[(f"short one-shot work: fill, {size}", "cheating_once_worker", ONCE, once("fill", size, "pwrite,mmap"))
      for size in ("1MiB", "8MiB", "64MiB")],
    *[(f"short one-shot work: scan, {size}", "cheating_once_worker", ONCE, once("scan", size, "read:buffer=64KiB,mmap"))
      for size in ("1MiB", "8MiB", "64MiB")],
    *[(f"the same as a worker of the user's: {question}, 8MiB", "cheating_once_worker", ONCE, once(question, "8MiB", methods))
      for question, methods in (("append", "mine/pwrite,mine/mmap"), ("fill", "mine/pwrite,mine/mmap"), ("scan", "mine/read,mine/mmap"))],
    ("one offset read again", "cheating_worker", ("reads-one-place",), [*READ, "--file-size=64MiB", "--methods=pread"]),
    ("one offset read again, sum", "cheating_worker", ("reads-one-place",),
     [*READ, "--file-size=64MiB", "--methods=pread", "--consume=sum"]),
    ("a rate whose clock leaves time out", "cheating_worker", ("half-the-time", "shifts-time"),
     [*READ_SHORT, "--file-size=64MiB", "--methods=pread,mmap"]),
    ("the same as a worker of the user's", "cheating_worker", ("half-the-time", "shifts-time"),
     [*READ_SHORT, "--file-size=64MiB", "--methods=mine/pread,mine/mmap"]),
    ("reads in another order", "cheating_worker", ("sorts-reads",), [*READ, "--file-size=64MiB", "--methods=mmap,pread"]),
    ("work while idle", "cheating_worker", ("copies-first",), [*READ, "--file-size=64MiB", "--methods=pread"]),
    ("flat latencies", "cheating_worker", ("latencies-alike",),
     [*READ, "--file-size=64MiB", "--methods=pread", "--read-size=512KiB", "--reads-per-op=1"]),
    ("private copies", "cheating_worker", ("copies-first-direct",),
     [*READ, "--file-size=64MiB", "--methods=pread:direct", "--read-size=4KiB"]),
]


def figures(binaries, directory, worker, kind, question):
    """By method: the figures of the valid samples, and why the others are invalid."""
    out = directory / "run.jsonl"
    # Direct reads need a device.
    place = ROOT / "target" if any("direct" in word for word in question) else directory
    words = [binaries / "pagewise", "run", *question, *COMMON, "--json", "--out", out, "--dir", place]
    command = f"{binaries / 'examples' / worker} {kind}"
    is_users = any("mine/" in word for word in question)
    words += ["--worker", f"mine={command}"] if is_users else ["--worker-command", command]
    ran = subprocess.run(words, capture_output=True, text=True)
    if ran.returncode > 1:
        sys.exit(f"cheats: {' '.join(question)} {kind}: {ran.stderr}")
    found = {cell["id"]: (cell["method"], [], []) for cell in json.loads(ran.stdout)["cells"] if cell["role"] == "measured"}
    for line in out.read_text().splitlines():
        sample = json.loads(line).get("record", {})
        if sample.get("kind") == "sample" and sample["cell"] in found:
            _, valid, reasons = found[sample["cell"]]
            outcome = sample["outcome"]
            if outcome["outcome"] != "taken" or outcome["failures"]:
                reasons.append(outcome["failures"][0]["kind"] if outcome.get("failures") else outcome["outcome"])
            else:
                valid.append(figure_of(outcome["measurement"], question[0]))
    out.unlink()
    return {method: (valid, reasons) for method, valid, reasons in found.values()}


def figure_of(measured, question):
    if question == "read":
        return measured["operations"] / (measured["measured_ns"] + measured["unaccounted_in_region_ns"])
    parts = ("setup_ns", "warmup_ns", "measured_ns", "teardown_ns", "unaccounted_ns")
    return 1 / sum(measured.get(part, 0) for part in parts)


def ratio(honest, cheat):
    """Of the medians of all samples; runs are lists of figures."""
    return statistics.median(itertools.chain(*cheat)) / statistics.median(itertools.chain(*honest))


def interval(honest, cheat):
    draw = random.Random(1)
    drawn = sorted(ratio(draw.choices(honest, k=len(honest)), draw.choices(cheat, k=len(cheat))) for _ in range(2000))
    return drawn[50], drawn[1949]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=10, help="runs of each cheat, and of its twin")
    arguments.add_argument("--word", default="", help="only families whose names contain it")
    arguments.add_argument("--debug", action="store_true", help="binaries that are not optimised")
    arguments.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None, help="where the files are")
    asked = arguments.parse_args()
    binaries = ROOT / "target" / ("debug" if asked.debug else "release")
    print("| family | method | cheat | valid samples | invalid as | to its honest twin |\n| --- | --- | --- | --- | --- | --- |")
    gains, order = [], random.Random(1)
    with tempfile.TemporaryDirectory(dir=asked.dir) as directory:
        for family, worker, kinds, question in (row for row in FAMILIES if asked.word in row[0]):
            runs = []
            for _ in range(asked.rounds):
                turns = ["honest", CONTROL, *kinds]
                order.shuffle(turns)
                for kind in turns:
                    as_kind = "honest" if kind == CONTROL else kind
                    runs.append((kind, figures(binaries, Path(directory), worker, as_kind, question)))
            for kind, method in itertools.product((CONTROL, *kinds), runs[0][1]):
                of = {wanted: [found[method] for ran, found in runs if ran == wanted] for wanted in ("honest", kind)}
                valid = {wanted: [run[0] for run in of[wanted] if run[0]] for wanted in of}
                reasons = [reason for run in of[kind] for reason in run[1]]
                count, gain = sum(map(len, valid[kind])), "–"
                if count and valid["honest"]:
                    least, most = interval(valid["honest"], valid[kind])
                    gain = f"{ratio(valid['honest'], valid[kind]):.3f} [{least:.3f}, {most:.3f}]"
                    if least > BAR:
                        gains.append(f"{family}, {method}, {kind}: {gain}")
                why = ", ".join(sorted(set(reasons))) or "–"
                print(f"| {family} | `{method}` | {kind} | {count} of {count + len(reasons)} | {why} | {gain} |", flush=True)
    for gain in gains:
        print(f"cheats: it gains: {gain}", file=sys.stderr)
    sys.exit(1 if gains else 0)


if __name__ == "__main__":
    main()
