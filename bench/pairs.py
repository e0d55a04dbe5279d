"""What comparisons of pagewise with fio in pairs share."""

import argparse
import json
import os
import statistics
import subprocess


def arguments(description, pairs):
    """The parser of a comparison; it makes `pairs` of them by default."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=pairs)
    parser.add_argument("--dir", default=".")
    parser.add_argument("--pagewise", type=os.path.abspath, default=os.path.abspath("target/release/pagewise"))
    return parser


def judged(pagewise, directory, question, words, look=None):
    """The judged JSON of a run; `look` sees its file, which is removed."""
    path = os.path.join(directory, "run.jsonl")
    command = [pagewise, question, "--dir", directory, "--out", path, "--no-ceilings", "--json", "--no-html", *words]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.stderr)
    if look:
        look(path)
    os.remove(path)
    found = json.loads(ended.stdout)
    return found[0] if isinstance(found, list) else found


def measured(pagewise, directory, question, words):
    """The one measured cell of a run."""
    return next(cell for cell in judged(pagewise, directory, question, words)["cells"] if cell["role"] == "measured")


def fio(*words):
    """The job of a run of fio, as JSON."""
    ended = subprocess.run(["fio", "--output-format=json", *words], check=True, capture_output=True, text=True).stdout
    return json.loads(ended[ended.index("{"):])["jobs"][0]


def make_file(path, mebibytes):
    """A file of random bytes, by writes of 1 MiB, on the device."""
    with open(path, "wb") as file:
        for _ in range(mebibytes):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fdatasync(file.fileno())


def in_turns(pair, ours, theirs):
    """What both do, of which the first goes first in every other pair."""
    if pair % 2 == 0:
        first = ours()
        return first, theirs()
    second = theirs()
    return ours(), second


def spread(values):
    """Median and ends."""
    return f"{statistics.median(values):.3f} [{min(values):.3f}, {max(values):.3f}]"
