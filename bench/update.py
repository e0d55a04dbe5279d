#!/usr/bin/env python3
"""Updates in place: pagewise against fio, in pairs.

    python3 bench/update.py [--pairs 5] [--dir DIR] [--pagewise PATH]

A pair is seven samples of pagewise and seven runs of fio, which take turns in going first: each block of 4 KiB of a cached file of
32 MiB is overwritten once, in no order, with fdatasync(2) after each 64, by pwrite(2) without and with O_DIRECT; or half of the
blocks, with a read of another block before each. The file is written anew before each sample, by writes of 1 MiB.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

MIB = 32
SAMPLES = 7


def fio(directory, method, reads):
    """Reads and updates per second, the median of the samples; `reads` before each update."""
    path = os.path.join(directory, "fio.update")
    command = [
        "fio", "--name=update", f"--filename={path}", "--rw=randrw",
        f"--rwmixread={100 * reads // (reads + 1)}", "--bs=4k", f"--size={MIB}m", "--ioengine=psync",
        f"--direct={int(method.endswith('direct'))}", "--fdatasync=64", "--overwrite=1", "--invalidate=0", "--randrepeat=0",
        "--output-format=json",
    ]
    rates = []
    for _ in range(SAMPLES):
        with open(path, "wb") as file:
            for _ in range(MIB):
                file.write(os.urandom(1 << 20))
            file.flush()
            os.fdatasync(file.fileno())
        ended = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        job = json.loads(ended[ended.index("{"):])["jobs"][0]
        rates.append((job["read"]["total_ios"] + job["write"]["total_ios"]) * 1000 / job["job_runtime"])
        os.remove(path)
    return statistics.median(rates)


def pagewise(binary, directory, method, reads):
    """The same of pagewise."""
    path = os.path.join(directory, "run.jsonl")
    command = [
        binary, "update", "--dir", directory, "--out", path, "--no-ceilings", "--json", "--no-html", "--methods", method,
        "--cache", "warm", "--file-size", f"{MIB}MiB", "--updates", str(MIB * 256 // (reads + 1)), "--reads-per-update", str(reads),
        "--sync", "every:256KiB", "--rounds", str(SAMPLES), "--max-writes", "60GiB",
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.stderr)
    os.remove(path)
    found = json.loads(ended.stdout)
    cells = (found[0] if isinstance(found, list) else found)["cells"]
    return (reads + 1) * next(cell["ops_per_second"]["median"] for cell in cells if cell["role"] == "measured")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--dir", default=".")
    parser.add_argument("--pagewise", default="target/release/pagewise")
    options = parser.parse_args()
    ratios = {(method, reads): [] for reads in (0, 1) for method in ("pwrite", "pwrite:direct")}
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        for pair in range(options.pairs):
            for (method, reads), found in ratios.items():
                sides = [
                    lambda: pagewise(options.pagewise, directory, method, reads), lambda: fio(directory, method, reads),
                ]
                order = [0, 1] if pair % 2 == 0 else [1, 0]
                rates = {side: sides[side]() for side in order}
                found.append(rates[0] / rates[1])
                print(f"{pair + 1} {method}, {reads} reads each: pagewise {rates[0]:.0f}/s, fio {rates[1]:.0f}/s", flush=True)
    for (method, reads), found in ratios.items():
        print(f"{method}, {reads} reads each: {statistics.median(found):.3f} [{min(found):.3f}, {max(found):.3f}] of fio's rate")


if __name__ == "__main__":
    main()
