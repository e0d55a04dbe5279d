#!/usr/bin/env python3
"""Syncs of a log: pagewise against fio, in pairs, and the calls of a log in one table.

    python3 bench/log.py [--pairs 21] [--dir DIR] [--pagewise PATH] [--calls]

A pair is a run of fio and one of pagewise, which take turns in going first: records of 4 KiB into a
file of 16 MiB that was written before, by one thread, with fdatasync(2) after each. --calls prints
what each call costs, for a new file, an allocated and a reused one, in place of the pairs.
"""

import os
import statistics
import tempfile

import pairs

FILE_MIB = 16


def fio(directory):
    """Syncs per second and the p99 of a sync in microseconds."""
    path = os.path.join(directory, "fio.log")
    job = pairs.fio(
        "--name=log", f"--filename={path}", "--rw=write", "--bs=4k", f"--size={FILE_MIB}m", "--overwrite=1", "--ioengine=psync",
        "--fdatasync=1", "--fallocate=none", "--percentile_list=50:99",
    )
    os.remove(path)
    percentiles = job["sync"]["lat_ns"]["percentile"]
    return job["sync"]["lat_ns"]["N"] / job["write"]["runtime"] * 1000, percentiles["99.000000"] / 1000


def pagewise_syncs(pagewise, directory):
    """The same of pagewise."""
    words = ["--record-size", "4KiB", "--sync", "commit", "--methods", "pwrite", "--cache", "warm", "--threads", "1"]
    words += ["--file-size", f"{FILE_MIB}MiB", "--rounds", "7", "--sample", "400ms"]
    syncs = pairs.measured(pagewise, directory, "append", words)["syncs"]
    return syncs["per_second"]["median"], syncs["p99"] / 1000


def interval(values):
    """Median and its order-statistics interval, at 95 % or more of 21 values."""
    ordered = sorted(values)
    cut = max(0, (len(ordered) - 1) // 2 - int(len(ordered) ** 0.5))
    return f"{statistics.median(ordered):.3f} [{ordered[cut]:.3f}, {ordered[-1 - cut]:.3f}]"


def compare(options):
    ratios, tails = [], []
    for pair in range(options.pairs):
        # Three runs of fio are as long as the samples of pagewise.
        one = lambda: [statistics.median(figures) for figures in zip(*[fio(options.dir) for _ in range(3)])]
        other = lambda: pagewise_syncs(options.pagewise, options.dir)
        theirs, ours = pairs.in_turns(pair, one, other)
        ratios.append(ours[0] / theirs[0])
        tails.append(ours[1] / theirs[1])
        print(f"{pair + 1}: pagewise {ours[0]:.0f}/s p99 {ours[1]:.0f} us; fio {theirs[0]:.0f}/s p99 {theirs[1]:.0f} us", flush=True)
    print(f"syncs/s, pagewise over fio: {interval(ratios)}")
    print(f"p99, pagewise over fio: {interval(tails)}")


def calls(options):
    print("| file | call | syncs/s | p50 | p99 | longest |")
    print("|---|---|---|---|---|---|")
    calls = "fdatasync,fsync,RWF_DSYNC,O_DSYNC,sync_file_range"
    for shown, cache, method in [("new", "cold", "pwrite"), ("allocated", "cold", "pwrite:prealloc"), ("reused", "warm", "pwrite")]:
        words = ["--record-size", "8KiB", "--sync", "commit", "--sync-call", calls, "--methods", method, "--cache", cache]
        words += ["--threads", "1", "--file-size", f"{FILE_MIB}MiB", "--rounds", "11", "--sample", "400ms"]
        for cell in pairs.judged(options.pagewise, options.dir, "append", words)["cells"]:
            syncs = cell["syncs"]
            if cell["role"] != "measured" or syncs is None:
                continue
            rate = syncs["per_second"]
            ends = f" [{rate['low']:.0f}, {rate['high']:.0f}]" if rate["low"] is not None else ""
            times = [f"{syncs[name] / 1000:.0f} us" if syncs[name] is not None else "–" for name in ("p50", "p99", "max")]
            print(f"| {shown} | `{syncs['call']}` | {rate['median']:.0f}{ends} | {' | '.join(times)} |", flush=True)


def main():
    parser = pairs.arguments(__doc__, 21)
    parser.add_argument("--calls", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        options.dir = directory
        calls(options) if options.calls else compare(options)


if __name__ == "__main__":
    main()
