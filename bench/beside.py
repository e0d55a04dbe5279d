#!/usr/bin/env python3
"""Do the orders that a study in C found beside a scan come out of pagewise?

A process reads a hot set of 0.75 times the cache at random, under a memory limit, while another one
scans a file of four times the limit. The study (865 samples, every byte compared) calls robust:
  * a scan through the cache takes the hot set of mmap:random, and leaves that of mmap;
  * a scan by O_DIRECT, or with RWF_DONTCACHE, leaves all of it.
Run as root on a quiet machine, about six minutes.
"""

import tempfile

from pairs import arguments, judged

LIMIT = "256MiB"
SCANS = ["scan:pread", "scan:pread:noreuse", "scan:pread:direct", "scan:pread:dontcache"]
METHODS = ["mmap", "mmap:random", "pread"]


def main():
    parser = arguments(__doc__, 1)
    parser.add_argument("--rate", default="400MiB/s")
    options = parser.parse_args()
    words = ["--memory", LIMIT, "--span", "0.75x", "--workload", "random-read", "--rounds", "7",
             "--methods", ",".join(METHODS), "--beside", "none"]
    for scan in SCANS:
        words += ["--beside", f"{scan},rate={options.rate}"]
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="pagewise-bench-") as directory:
        run = judged(options.pagewise, directory, "read", words)
    left, alone = {}, {}
    print(f"{'actor':28}{'method':14}{'left in cache':>14}{'of alone':>10}{'samples':>9}")
    for cell in run["cells"]:
        actor = cell["actor"]
        if cell["role"] != "measured" or actor is None:
            continue
        key = (cell["parameters"]["beside"].split(",")[0], cell["method"])
        left[key] = actor["left_in_cache"]
        alone[key] = actor["of_alone"] and actor["of_alone"]["median"]
        shown = "-" if alone[key] is None else f"{alone[key]:.3f}"
        print(f"{key[0]:28}{key[1]:14}{left[key]:>14.3f}{shown:>10}{cell['samples']:>9}")
    orders = {
        "a scan takes the hot set of mmap:random": left["scan:pread", "mmap:random"] < 0.5,
        "a scan leaves that of mmap": left["scan:pread", "mmap"] > 0.9,
        "O_DIRECT leaves all": all(left["scan:pread:direct", method] > 0.98 for method in METHODS),
        "RWF_DONTCACHE leaves all": all(left["scan:pread:dontcache", method] > 0.98 for method in METHODS),
    }
    for order, holds in orders.items():
        print(f"{'holds' if holds else 'DOES NOT HOLD'}: {order}")
    for ranking in run.get("actors", []):
        print(ranking["method"], [(one["actor"].split(",")[0], one["place"]) for one in ranking["actors"]])
    raise SystemExit(0 if all(orders.values()) else 1)


if __name__ == "__main__":
    main()
