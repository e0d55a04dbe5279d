#!/usr/bin/env python3
"""Time and memory of comparing and reporting many runs: copies of a run file, each as if made on
another host.

    python3 bench/fleet.py RUN.jsonl --runs 500

Only the header of each copy differs: host, start, kernel (five of them), readahead (two). Exit
status 1 if a bar is missed: 20 s, and the memory of each command.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"
SECONDS = 20
# The commands, with the memory that each may take, in MB.
COMMANDS = [(["compare", "--by", "kernel"], 500), (["report", "--rows"], 67), (["report", "--json"], 105), (["report", "--csv"], 105)]


def line_of(record):
    hashed = 0xCBF29CE484222325
    for byte in record.encode():
        hashed = ((hashed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f'{{"check":"{hashed:016x}","record":{record}}}\n'


def spent(command):
    began = time.monotonic()
    actions = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    return status, time.monotonic() - began, usage.ru_maxrss / 1000


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
        missed = False
        for words, most in COMMANDS:
            status, took, megabytes = spent([arguments.pagewise, *words, folder])
            missed |= status != 0 or took > SECONDS or megabytes > most
            print(f"{' '.join(words)}: {arguments.runs} runs of {arguments.run.stat().st_size / 1e6:.2f} MB: {took:.1f} s, "
                  f"{megabytes:.0f} MB at most")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
