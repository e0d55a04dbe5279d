#!/usr/bin/env python3
"""Screenshots of a run's page for the docs: light, dark, and as narrow as a telephone.

    python3 bench/screenshots.py RUN.jsonl --to docs/images

Host name and directory of the run are replaced first. Each file is a small PNG; exit status 1 if
one is larger than 150 kB.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from chromium import Chromium
from fleet import line_of

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"
BYTES = 150_000
# Name, width, height, colours, what is at the top, and the mark at which the pointer is.
PICTURES = [
    ("page-light", 1100, 900, "light", "h1", None),
    ("page-dark", 1100, 760, "dark", ".ratios", 2),
    ("page-narrow", 400, 800, "light", ".ratios", 2),
]
PREPARE = """(async () => {
  const heading = [...document.querySelectorAll('h3')].find((one) => one.textContent.startsWith('Which method is fastest'));
  heading.classList.add('ratios');
  const top = document.querySelector('TOP');
  top.scrollIntoView();
  scrollBy(0, -8);
  const figure = heading.nextElementSibling;
  figure.scrollIntoView();
  while (!figure.querySelector('.interactive')) await new Promise(requestAnimationFrame);
  top.scrollIntoView();
  scrollBy(0, -8);
  for (let frame = 0; frame < 20; frame += 1) await new Promise(requestAnimationFrame);
  const mark = figure.querySelectorAll('.series :is(circle, rect)')[MARK];
  const box = mark?.getBoundingClientRect();
  return box ? [box.x + box.width / 2, box.y + box.height / 2] : [0, 0];
})()"""


def anonymous(run, to):
    head, rest = run.read_text().split("\n", 1)
    header = json.loads(head)["record"]
    directory = header["plan"]["source"].get("directory")
    header["environment"]["host_name"] = "workstation"
    text = json.dumps(header, separators=(",", ":"))
    if directory:
        text = text.replace(directory, "/data")
    to.write_text(line_of(text) + rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--pagewise", default=str(PAGEWISE))
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    is_large = False
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        anonymous(arguments.run, Path(folder) / "read.jsonl")
        subprocess.run([arguments.pagewise, "report", "read.jsonl", "--html", "read.html"], cwd=folder, check=True)
        for name, width, height, scheme, top, mark in PICTURES:
            browser.show(width, height, scheme)
            browser.open(Path(folder) / "read.html")
            place = browser.evaluate(PREPARE.replace("TOP", top).replace("MARK", str(mark if mark is not None else -1)))
            browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
            path = arguments.to / f"{name}.png"
            browser.picture(path)
            is_large |= path.stat().st_size > BYTES
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
    return int(is_large)


if __name__ == "__main__":
    sys.exit(main())
