#!/usr/bin/env python3
"""How many lines of production code each crate has: physical lines of its sources in Rust, without
tests.

    python3 bench/lines.py            # a line for each crate, and their sum
    python3 bench/lines.py --rooms    # each folder and file directly below `src` too

Not counted are files that are compiled for tests only (`tests.rs`, what lies in a folder `tests`,
and modules that are declared below `#[cfg(test)]`), the part of a file from `#[cfg(test)] mod ...
{` to its end, and empty ends of files.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(ROOT / "checks"))

import layers

# A module that only tests have, in a file of its own.
ELSEWHERE = re.compile(r"^ *#\[cfg\(test\)\]\n(?: *#\[.*\]\n)* *(?:pub(?:\([\w ]+\))? )?mod (\w+);", re.MULTILINE)


def modules_of_tests(path, text):
    """The paths below which a file declares modules that only tests have."""
    folder = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("")
    return {folder / name for name in ELSEWHERE.findall(text)}


def lines(folder):
    """The number of lines of each file below the folder of a crate's sources, by its path."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.rs"))}
    of_tests = set().union(*(modules_of_tests(path, text) for path, text in texts.items()))
    counted = {}
    for path, text in texts.items():
        if of_tests & {path.with_suffix(""), *path.parents} or "tests" in path.relative_to(folder).with_suffix("").parts:
            continue
        counted[path.relative_to(folder)] = len(text.removesuffix(layers.tests_of(text)).rstrip().splitlines())
    return counted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", action="store_true", help="each folder and file directly below `src` too")
    arguments = parser.parse_args()
    total = 0
    folders = [*(ROOT / "crates").iterdir(), *(ROOT / "extras").iterdir()]
    for crate in sorted(folders, key=lambda folder: (folder.parent.name, folder.name)):
        counted = lines(crate / "src") if (crate / "src").is_dir() else {}
        total += sum(counted.values())
        print(f"{sum(counted.values()):7,}  {crate.name if crate.parent.name == 'crates' else crate.relative_to(ROOT)}")
        rooms = {}
        for path, count in counted.items():
            room = path.parts[0].removesuffix(".rs")
            rooms[room] = rooms.get(room, 0) + count
        for room, count in sorted(rooms.items(), key=lambda room: -room[1]) if arguments.rooms else []:
            print(f"{count:15,}  {room}")
    print(f"{total:7,}  all")


if __name__ == "__main__":
    main()
