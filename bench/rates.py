#!/usr/bin/env python3
"""Reads at a rate: pagewise against fio, in pairs.

    python3 bench/rates.py [--pairs 5] [--dir DIR] [--pagewise PATH]

A pair is seven samples of pagewise and one run of fio as long as all of them, which take turns in going first: reads of 4 KiB
at random positions of a cached file of 64 MiB, by pread(2) without and with O_DIRECT, at so many a second. Compared is the
median latency. fio counts from the call, pagewise from the moment at which a read is due: where reads do not wait for each
other the two are alike.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

MIB = 64
SAMPLES = 7
SAMPLE_MS = 500


def fio(directory, method, rate):
    """Median latency in ns."""
    path = os.path.join(directory, "fio.rates")
    direct = int(method.endswith("direct"))
    command = [
        "fio", "--name=rates", f"--filename={path}", "--rw=randread", "--bs=4k", f"--size={MIB}m", "--ioengine=psync",
        f"--direct={direct}", f"--rate_iops={rate}", "--time_based", f"--runtime={SAMPLES * SAMPLE_MS}ms", "--invalidate=0",
        "--norandommap", "--randrepeat=0", "--percentile_list=50", "--output-format=json",
    ]
    with open(path, "wb") as file:
        for _ in range(MIB):
            file.write(os.urandom(1 << 20))
        os.fdatasync(file.fileno())
    ended = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    os.remove(path)
    read = json.loads(ended[ended.index("{"):])["jobs"][0]["read"]
    if read["iops"] < 0.99 * rate:
        raise SystemExit(f"fio did {read['iops']:.0f} of {rate} reads a second")
    return read["clat_ns"]["percentile"]["50.000000"]


def pagewise(binary, directory, method, rate):
    """The same of pagewise."""
    path = os.path.join(directory, "run.jsonl")
    command = [
        binary, "read", "--dir", directory, "--out", path, "--no-ceilings", "--json", "--no-html", "--methods", method,
        "--workload", "random-read", "--cache", "warm", "--file-size", f"{MIB}MiB", "--read-size", "4KiB", "--reads-per-op", "1",
        "--threads", "1", "--rate", str(rate), "--rounds", str(SAMPLES), "--sample", f"{SAMPLE_MS}ms",
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.stderr)
    os.remove(path)
    found = json.loads(ended.stdout)
    cells = (found[0] if isinstance(found, list) else found)["cells"]
    return next(cell["latency_ns"]["p50"] for cell in cells if cell["role"] == "measured")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--dir", default=".")
    parser.add_argument("--pagewise", default="target/release/pagewise")
    options = parser.parse_args()
    binary = os.path.abspath(options.pagewise)
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        for method, rate in (("pread", 50_000), ("pread", 5_000), ("pread:direct", 1_000), ("pread:direct", 5_000)):
            ratios, seen = [], []
            for pair in range(options.pairs):
                sides = {}
                for side in (("fio", "pagewise") if pair % 2 else ("pagewise", "fio")):
                    sides[side] = fio(directory, method, rate) if side == "fio" else pagewise(binary, directory, method, rate)
                ratios.append(sides["pagewise"] / sides["fio"])
                seen.append(sides)
            medians = {side: statistics.median(one[side] for one in seen) for side in ("pagewise", "fio")}
            print(
                f"{method} at {rate}/s: p50 {medians['pagewise'] / 1000:.2f} us, fio {medians['fio'] / 1000:.2f} us; "
                f"pagewise over fio {statistics.median(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}]",
                flush=True,
            )


if __name__ == "__main__":
    main()
