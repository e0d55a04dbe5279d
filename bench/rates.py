#!/usr/bin/env python3
"""Reads at a rate: pagewise against fio, in pairs.

    python3 bench/rates.py [--pairs 5] [--dir DIR] [--pagewise PATH]

A pair is seven samples of pagewise and one run of fio as long as all of them, which take turns in
going first: reads of 4 KiB at random positions of a cached file of 64 MiB, by pread(2) without and
with O_DIRECT, at so many a second. Compared is the median latency. fio counts from the call,
pagewise from the moment at which a read is due: where reads do not wait for each other the two are
alike.
"""

import os
import statistics
import tempfile

import pairs

MIB = 64
SAMPLES = 7
SAMPLE_MS = 500


def fio(directory, method, rate):
    """Median latency in ns."""
    path = os.path.join(directory, "fio.rates")
    pairs.make_file(path, MIB)
    read = pairs.fio(
        "--name=rates", f"--filename={path}", "--rw=randread", "--bs=4k", f"--size={MIB}m", "--ioengine=psync",
        f"--direct={int(method.endswith('direct'))}", f"--rate_iops={rate}", "--time_based", f"--runtime={SAMPLES * SAMPLE_MS}ms",
        "--invalidate=0", "--norandommap", "--randrepeat=0", "--percentile_list=50",
    )["read"]
    os.remove(path)
    if read["iops"] < 0.99 * rate:
        raise SystemExit(f"fio did {read['iops']:.0f} of {rate} reads a second")
    return read["clat_ns"]["percentile"]["50.000000"]


def pagewise(binary, directory, method, rate):
    """The same of pagewise."""
    words = ["--methods", method, "--workload", "random-read", "--cache", "warm", "--file-size", f"{MIB}MiB", "--read-size", "4KiB"]
    words += ["--reads-per-op", "1", "--threads", "1", "--rate", str(rate), "--rounds", str(SAMPLES), "--sample", f"{SAMPLE_MS}ms"]
    return pairs.measured(binary, directory, "read", words)["latency_ns"]["p50"]


def main():
    options = pairs.arguments(__doc__, 5).parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        for method, rate in (("pread", 5_000), ("pread", 50_000), ("pread:direct", 1_000), ("pread:direct", 5_000)):
            ours = lambda: pagewise(options.pagewise, directory, method, rate)
            theirs = lambda: fio(directory, method, rate)
            seen = [pairs.in_turns(pair, ours, theirs) for pair in range(options.pairs)]
            medians = [statistics.median(side) / 1000 for side in zip(*seen)]
            ratios = [one / other for one, other in seen]
            print(
                f"{method} at {rate}/s: p50 {medians[0]:.2f} us, fio {medians[1]:.2f} us; pagewise over fio {pairs.spread(ratios)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
