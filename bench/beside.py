#!/usr/bin/env python3
"""Do the orders that a study in C found beside a scan come out of pagewise? And what does a writer
leave?

A process reads a hot set of 0.75 times the cache at random, under a memory limit, while another one
scans a file of four times the limit. The study (865 samples, every byte compared) calls robust:
  * a scan through the cache takes the hot set of mmap:random, and leaves that of mmap;
  * a scan by O_DIRECT, or with RWF_DONTCACHE, leaves all of it.
`--actors append` asks the same beside records that are written over such a file and committed. What
the device wrote meanwhile must lie between the bounds of the bytes of the actor's requests.
Run as root on a quiet machine: about six minutes, at 200 MiB/s ten.
"""

import json
import tempfile

from pairs import arguments, judged

LIMIT = "256MiB"
ACTORS = {
    "scan": ["scan:pread", "scan:pread:noreuse", "scan:pread:direct", "scan:pread:dontcache"],
    "append": ["append:pwrite", "append:pwrite:direct+buffer=1MiB", "append:pwrite:dontcache"],
}
METHODS = ["mmap", "mmap:random", "pread"]


def orders(kind, left):
    if kind == "append":
        return {
            "records through the cache take the hot set of mmap:random": left["append:pwrite", "mmap:random"] < 0.5,
            "records through the cache leave that of mmap": left["append:pwrite", "mmap"] > 0.9,
            "O_DIRECT leaves all": all(left[ACTORS[kind][1], method] > 0.98 for method in METHODS),
        }
    return {
        "a scan takes the hot set of mmap:random": left["scan:pread", "mmap:random"] < 0.5,
        "a scan leaves that of mmap": left["scan:pread", "mmap"] > 0.9,
        "O_DIRECT leaves all": all(left["scan:pread:direct", method] > 0.98 for method in METHODS),
        "RWF_DONTCACHE leaves all": all(left["scan:pread:dontcache", method] > 0.98 for method in METHODS),
    }


def outside_bounds(path):
    """Samples beside a writer, and those whose device bytes are outside the bounds of its
    requests."""
    samples = outside = 0
    for line in open(path, encoding="utf-8"):
        outcome = json.loads(line)["record"].get("outcome") or {}
        evidence = outcome.get("evidence") or {}
        actor = evidence.get("actor") or {}
        if not actor.get("writes") or outcome.get("failures"):
            continue
        wall, written = evidence["wall_ns"], evidence["device_written_bytes"]
        spans = [(one["began_ns"], one["began_ns"] + one["wall_ns"], one["bytes"]) for one in actor["windows"]]
        least = sum(size for begin, end, size in spans if begin >= 0 and end <= wall)
        most = sum(size for begin, end, size in spans if end > 0 and begin < wall)
        samples += 1
        # Metadata of the filesystem.
        outside += not least <= written <= most + (1 << 20)
    return samples, outside


def main():
    parser = arguments(__doc__, 1)
    parser.add_argument("--rate", default="400MiB/s")
    parser.add_argument("--actors", choices=list(ACTORS), default="scan")
    options = parser.parse_args()
    words = ["--memory", LIMIT, "--span", "0.75x", "--workload", "random-read", "--rounds", "7",
             "--methods", ",".join(METHODS), "--max-writes", "500GiB", "--beside", "none"]
    for actor in ACTORS[options.actors]:
        words += ["--beside", f"{actor},rate={options.rate}"]
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="pagewise-bench-") as directory:
        seen = []
        run = judged(options.pagewise, directory, "read", words, lambda path: seen.append(outside_bounds(path)))
    (samples, outside), = seen
    left, alone = {}, {}
    print(f"{'actor':34}{'method':14}{'left in cache':>14}{'of alone':>10}{'samples':>9}")
    for cell in run["cells"]:
        actor = cell["actor"]
        if cell["role"] != "measured" or actor is None:
            continue
        key = (cell["parameters"]["beside"].split(",")[0], cell["method"])
        left[key] = actor["left_in_cache"]
        alone[key] = actor["of_alone"] and actor["of_alone"]["median"]
        shown = "-" if alone[key] is None else f"{alone[key]:.3f}"
        print(f"{key[0]:34}{key[1]:14}{left[key]:>14.3f}{shown:>10}{cell['samples']:>9}")
    found = orders(options.actors, left)
    if samples:
        found[f"what the device wrote is within the bounds in all of {samples} samples"] = outside == 0
    for order, holds in found.items():
        print(f"{'holds' if holds else 'DOES NOT HOLD'}: {order}")
    for ranking in run.get("actors", []):
        print(ranking["method"], [(one["actor"].split(",")[0], one["place"]) for one in ranking["actors"]])
    raise SystemExit(0 if all(found.values()) else 1)


if __name__ == "__main__":
    main()
