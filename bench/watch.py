#!/usr/bin/env python3
"""What `pagewise inspect` and `record` cost the program that they watch, as root: interleaved pairs
of the program alone and watched.

    cargo build --release
    python3 bench/watch.py --rounds 11

Each program reports its own time, so that starting and ending the watch does not count: look-ups of
sqlite3 in a cached database by read calls and through a mapping, and in a cold one, whose reads
wait; loops in C of cached 4 KiB reads and of page faults. Bars: 5 % with faults and switches
(--no-calls), 0.8 us a call, 1.5 us a call and 8 bytes an access in a recording. With
`--long 100000000` the recorder has 64 MiB of memory.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import traces

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"
CALLS, FAULTS = 200_000, 200_000

LOOP = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **arguments) {
    int faults = !strcmp(arguments[1], "faults"), file = open(arguments[2], O_RDONLY);
    long many = atol(arguments[3]);
    char block[4096];
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    volatile char sum = 0;
    for (long done = 0; done < many;) {
        if (!faults) {
            if (pread(file, block, 4096, done++ % 4096 * 4096) != 4096) return 1;
            continue;
        }
        char *map = mmap(0, 16 << 20, PROT_READ, MAP_PRIVATE, file, 0);
        for (long page = 0; page < 4096 && done < many; page += 16, done++) sum += map[page * 4096];
        munmap(map, 16 << 20);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    fprintf(stderr, "took %.9f\n", to.tv_sec - from.tv_sec + (to.tv_nsec - from.tv_nsec) / 1e9);
}
"""


def prepare(folder):
    (folder / "loop.c").write_text(LOOP)
    subprocess.run(["cc", "-O2", "-o", folder / "loop", folder / "loop.c"], check=True)
    (folder / "data").write_bytes(os.urandom(16 << 20))
    loop = lambda what, many: ([str(folder / "loop"), what, str(folder / "data"), str(many)], "", None)
    programs = {"reads of 4 KiB": loop("reads", CALLS), "page faults": loop("faults", FAULTS)}
    database = folder / "look.db"
    fill = ("create table t(k integer primary key, v blob); with recursive n(i) as (select 1 union all select i+1 from n where i<50000) "
            "insert into t select i, randomblob(400) from n;")
    subprocess.run(["sqlite3", database], input=fill, text=True, check=True)
    os.sync()
    looks = "".join(f"select length(v) from t where k={k * 7919 % 50000 + 1};\n" for k in range(20_000))
    for name, size, cold in (("sqlite3, reads", 0, None), ("sqlite3, mapping", 1 << 30, None), ("sqlite3, cold reads", 0, database)):
        text = f".output /dev/null\npragma mmap_size={size};\npragma cache_size=10;\n.timer off\n"
        # The shell's timer counts single statements, so a clock stands at both ends.
        clock = ".output stderr\nselect 'at '||((julianday('now')-2440587.5)*86400.0);\n.output /dev/null\n"
        programs[name] = (["sqlite3", str(database)], text.replace(".timer off\n", "") + clock + looks + clock, cold)
    return programs


def seconds(command, text, cold, watch):
    if cold:
        with open(cold, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    ended = subprocess.run([*watch, *command], input=text, capture_output=True, text=True, check=True)
    took = re.search(r"took ([0-9.]+)", ended.stderr)
    if took:
        return float(took[1])
    marks = [float(found) for found in re.findall(r"at ([0-9.]+)", ended.stderr)]
    return marks[-1] - marks[0]


def seen_by(path):
    """An inspection, or the trailer of a trace, and the bytes of the file, which is removed."""
    found = json.loads(path.read_bytes()) if path.suffix == ".json" else traces.trailer(path)
    size = path.stat().st_size
    path.unlink()
    return found, size


def long_recording(pagewise, command, trace):
    """Records a program that makes many calls: the peak of the recorder's memory, or of what it was
    started from or waited for, if that is more."""
    with subprocess.Popen([pagewise, "record", "-o", trace, "--", *command], stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    found, size = seen_by(trace)
    whole = "complete" if found["complete"] else f"{found['lost_records']} records lost"
    count = found["accesses"]
    print(f"{count} accesses recorded, {whole}: {size / count:.1f} B each on disk, peak memory {used.ru_maxrss / 1024:.1f} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--long", type=int, metavar="CALLS", help="instead record so many reads, and say what the recorder takes")
    parser.add_argument("--pagewise", default=str(PAGEWISE))
    parser.add_argument("--dir", default=".", help="folder for the files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir, prefix=".inspect-") as folder:
        folder = Path(folder).resolve()
        programs = prepare(folder)
        seen, trace = folder / "seen.json", folder / "t.trace"
        if arguments.long:
            command, *_ = programs["reads of 4 KiB"]
            return long_recording(arguments.pagewise, [*command[:-1], str(arguments.long)], trace)
        inspect = [arguments.pagewise, "inspect", "--json", "--out", str(seen)]
        ways = {"alone": [], "faults and switches": [*inspect, "--no-calls", "--"], "and calls": [*inspect, "--"],
                "recorded": [arguments.pagewise, "record", "-o", str(trace), "--"]}
        for name, (command, text, cold) in programs.items():
            took = {way: [] for way in ways}
            events, size = {}, 0
            for _ in range(arguments.rounds):
                for way, watch in ways.items():
                    took[way].append(seconds(command, text, cold, watch))
                    if watch:
                        found, size = seen_by(seen if seen.exists() else trace)
                        if not found["complete"]:
                            sys.exit(f"{name}, {way}: {found['lost_records']} records were lost")
                        events[way] = {one["event"]: one["counted"] for one in found["events"]}
            for way in list(ways)[1:]:
                ratio = statistics.median(watched / alone for watched, alone in zip(took[way], took["alone"]))
                more = statistics.median(watched - alone for watched, alone in zip(took[way], took["alone"]))
                counts = events[way]
                calls = counts.get("calls", 0)
                each = f", {more / calls * 1e6:.2f} us a call" if calls else ""
                faults = counts.get("minor faults", 0) + counts.get("major faults", 0)
                if way == "recorded" and found["accesses"]:
                    each += f", {size / found['accesses']:.1f} B an access on disk"
                print(f"{name}, {way}: {ratio:.3f} of {statistics.median(took['alone']):.3f} s; {faults} faults, {calls} calls{each}", flush=True)


if __name__ == "__main__":
    main()
