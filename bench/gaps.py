#!/usr/bin/env python3
"""Whether a replay with the program's gaps waits for its reads as the program did, and one without
does not; as root.

    cargo build --release
    python3 bench/gaps.py --dir DIRECTORY

A program reads a cold file of 64 MiB in order, 128 KiB at a time, and sleeps between its reads.
Meanwhile the kernel reads ahead. It is recorded once; then its trace is replayed by its own method
with its gaps and without, and it runs again in turn with them. Compared are medians of the time
that the reads take: by the program's own clock, and the total of a replay. A run during which
others moved bytes on the device is repeated, as pagewise does with its samples. Bar: with gaps the
replay is nearer to the program.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"
BYTES = 64 << 20
ROUNDS = 3
OTHERS = BYTES // 10 + (4 << 20)
PROGRAM = """
import os, sys, time
file, pause = os.open(sys.argv[1], os.O_RDONLY), float(sys.argv[2])
buffer, reading = bytearray(128 << 10), 0
buffer[:] = b'x' * len(buffer)
while True:
    began = time.perf_counter_ns()
    count = os.readv(file, [buffer])
    reading += time.perf_counter_ns() - began
    if count == 0:
        break
    time.sleep(pause)
print(reading)
"""


def device_bytes(data):
    """What the device of a file has moved so far."""
    number = os.stat(data).st_dev
    fields = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat").read_text().split()
    return 512 * (int(fields[2]) + int(fields[6]))


def program_ns(data, pause):
    """What the reads of the program take, from an empty cache."""
    while True:
        with open(data) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        before = device_bytes(data)
        ran = subprocess.run([sys.executable, "-c", PROGRAM, data, pause], capture_output=True, text=True, check=True)
        if device_bytes(data) - before <= BYTES + OTHERS:
            return int(ran.stdout)


def replayed_ns(trace, run):
    """The valid totals of a replay, with gaps and without."""
    words = ["--evict", f"--trial-rounds={ROUNDS}", "--no-ceilings", "--methods=pread", "--as-fast-as-possible=false,true", "--json", "--no-html"]
    ran = subprocess.run([PAGEWISE, "run", "replay", "--trace", trace, "--out", run, *words], capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        sys.exit(f"gaps: {ran.stderr}")
    totals = {True: [], False: []}
    for line in run.read_text().splitlines():
        record = json.loads(line)["record"]
        outcome = record.get("outcome", {})
        if record["kind"] != "sample" or outcome["outcome"] != "taken" or outcome["failures"]:
            continue
        one = outcome["measurement"]
        parts = ("setup_ns", "warmup_ns", "measured_ns", "teardown_ns", "unaccounted_ns")
        totals[one["gaps_ns"] > 0].append(sum(one[part] for part in parts) - one["gaps_ns"])
    run.unlink()
    return totals


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--dir", required=True, type=Path, help="where the file is made")
    arguments.add_argument("--turns", type=int, default=7, help="turns of three runs of the program and of three rounds of its replays")
    asked = arguments.parse_args()
    is_nearer = True
    print("| sleep between reads | program | replay with gaps | as fast as possible |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir=asked.dir) as folder:
        data, run = Path(folder) / "data.bin", Path(folder) / "run.jsonl"
        with open(data, "wb") as file:
            file.write(os.urandom(BYTES))
            os.fsync(file.fileno())
        for pause in ("0.001", "0.002"):
            trace = Path(folder) / f"{pause}.trace"
            record = [PAGEWISE, "record", f"--cold={data}", "-o", trace, "--", sys.executable, "-c", PROGRAM, data, pause]
            subprocess.run(record, capture_output=True, check=True)
            program, kept, left_out = [], [], []
            for _ in range(asked.turns):
                program += [program_ns(data, pause) for _ in range(ROUNDS)]
                totals = replayed_ns(trace, run)
                kept += totals[True]
                left_out += totals[False]
            if not kept or not left_out:
                sys.exit("gaps: others disturbed every sample of a replay: repeat it")
            own, *replays = (statistics.median(times) for times in (program, kept, left_out))
            is_nearer &= abs(replays[0] - own) < abs(replays[1] - own)
            shown = " | ".join(f"{ns / 1e6:.1f} ms ({len(times)})" for ns, times in zip((own, *replays), (program, kept, left_out)))
            print(f"| {float(pause) * 1000:.0f} ms | {shown} |", flush=True)
    return 0 if is_nearer else 1


if __name__ == "__main__":
    sys.exit(main())
