#!/usr/bin/env python3
"""Updates in place: pagewise against fio, in pairs.

    python3 bench/update.py [--pairs 5] [--dir DIR] [--pagewise PATH] [--reduced]

A pair is seven samples of pagewise and seven runs of fio, which take turns in going first: each
block of 4 KiB of a cached file of 32 MiB is overwritten once, in no order, with fdatasync(2) after
each 64, by pwrite(2) without and with O_DIRECT; or half of the blocks, with a read of another block
before each. The file is written anew before each sample, by writes of 1 MiB. `--reduced` has fio
read the clock less often (gtod_reduce), which shows what its readings cost.
"""

import os
import statistics
import tempfile

import pairs

MIB = 32
SAMPLES = 7


def fio(directory, method, reads, more):
    """Reads and updates per second, the median of the samples; `reads` before each update; `more`
    options."""
    path = os.path.join(directory, "fio.update")
    rates = []
    for _ in range(SAMPLES):
        pairs.make_file(path, MIB)
        job = pairs.fio(
            "--name=update", f"--filename={path}", "--rw=randrw", f"--rwmixread={100 * reads // (reads + 1)}", "--bs=4k",
            f"--size={MIB}m", "--ioengine=psync", f"--direct={int(method.endswith('direct'))}", "--fdatasync=64", "--overwrite=1",
            "--invalidate=0", "--randrepeat=0", *more,
        )
        rates.append((job["read"]["total_ios"] + job["write"]["total_ios"]) * 1000 / job["job_runtime"])
        os.remove(path)
    return statistics.median(rates)


def pagewise(binary, directory, method, reads):
    """The same of pagewise."""
    words = ["--methods", method, "--cache", "warm", "--file-size", f"{MIB}MiB", "--updates", str(MIB * 256 // (reads + 1))]
    words += ["--reads-per-update", str(reads), "--sync", "every:256KiB", "--rounds", str(SAMPLES), "--max-writes", "60GiB"]
    return (reads + 1) * pairs.measured(binary, directory, "update", words)["ops_per_second"]["median"]


def main():
    arguments = pairs.arguments(__doc__, 5)
    arguments.add_argument("--reduced", action="store_true", help="fio with gtod_reduce=1")
    options = arguments.parse_args()
    more = ["--gtod_reduce=1"] if options.reduced else []
    ratios = {(method, reads): [] for reads in (0, 1) for method in ("pwrite", "pwrite:direct")}
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        for pair in range(options.pairs):
            for (method, reads), found in ratios.items():
                ours, theirs = pairs.in_turns(
                    pair, lambda: pagewise(options.pagewise, directory, method, reads), lambda: fio(directory, method, reads, more),
                )
                found.append(ours / theirs)
                print(f"{pair + 1} {method}, {reads} reads each: pagewise {ours:.0f}/s, fio {theirs:.0f}/s", flush=True)
    for (method, reads), found in ratios.items():
        print(f"{method}, {reads} reads each: {pairs.spread(found)} of fio's rate")


if __name__ == "__main__":
    main()
