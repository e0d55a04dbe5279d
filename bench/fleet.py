#!/usr/bin/env python3
"""Time and memory of comparing many runs: copies of a run file, each as if made on another host.

    python3 bench/fleet.py RUN.jsonl --runs 500

Only the header of each copy differs: host, start, kernel (five of them), readahead (two). Exit status 1 if a bar is missed: 20 s and 500 MB.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"
SECONDS, MEGABYTES = 20, 500


def line_of(record):
    hashed = 0xCBF29CE484222325
    for byte in record.encode():
        hashed = ((hashed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f'{{"check":"{hashed:016x}","record":{record}}}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--pagewise", default=str(PAGEWISE))
    parser.add_argument("--dir", default=".", help="folder for the copies")
    arguments = parser.parse_args()
    head, rest = arguments.run.read_text().split("\n", 1)
    header = json.loads(head)["record"]
    with tempfile.TemporaryDirectory(dir=arguments.dir, prefix=".fleet-") as folder:
        for run in range(arguments.runs):
            environment = {**header["environment"], "host_name": f"host{run:03}", "kernel": f"6.{run % 5}.0",
                           "readahead_bytes": (128 << 10, 8 << 20)[run % 2], "started_unix_s": 1_800_000_000 + run}
            record = json.dumps({**header, "environment": environment}, separators=(",", ":"))
            (Path(folder) / f"{run:03}.jsonl").write_text(line_of(record) + rest)
        began = time.monotonic()
        child = os.posix_spawn(arguments.pagewise, [arguments.pagewise, "compare", "--by", "kernel", folder], os.environ,
                               file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
        _, status, usage = os.wait4(child, 0)
        took = time.monotonic() - began
    megabytes = usage.ru_maxrss / 1000
    print(f"{arguments.runs} runs of {arguments.run.stat().st_size / 1e6:.2f} MB: {took:.1f} s, {megabytes:.0f} MB at most")
    return int(status != 0 or took > SECONDS or megabytes > MEGABYTES)


if __name__ == "__main__":
    sys.exit(main())
