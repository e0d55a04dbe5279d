#!/usr/bin/env python3
"""Size of pages, and how soon they can be used in a headless Chromium.

    python3 bench/page.py RUN.jsonl target/tmp/pages/many.html
    python3 bench/page.py --overview pagewise-*.jsonl

Of a run file the page is made first. `loaded`: all scripts have run, so tables are sorted and
filtered. `plot`: besides, the first plot was brought into view and is interactive. Each page is
opened 7 times, and the median is printed. Its sheets are counted in a print on A4. Exit status 1 if
a bar is missed: 3 s, 250 KB, and of the four runs of an overview 5 sheets. The page of 2,000 cells
is what `cargo test -p pagewise --test page` leaves.
"""

import argparse
import base64
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chromium import Chromium

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"
BYTES, SHEETS, SECONDS = 250_000, 5, 3.0
FIRST_PLOT = """(async () => {
  const figure = document.querySelector('figure');
  if (!figure) return;
  figure.scrollIntoView();
  while (!figure.querySelector('.interactive')) await new Promise(requestAnimationFrame);
})()"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--overview", action="store_true", help="all run files are one page")
    parser.add_argument("--pagewise", default=str(PAGEWISE))
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--times", type=int, default=7)
    arguments = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory() as folder, Chromium(arguments.chromium) as browser:
        pages = [arguments.files] if arguments.overview else [[file] for file in arguments.files]
        for number, (file, *others) in enumerate(pages):
            page, made = file, ""
            if file.suffix != ".html":
                page = Path(folder) / f"{number}.html"
                began = time.monotonic()
                subprocess.run([arguments.pagewise, "report", file, *others, "--html", page], check=True)
                made = f", made in {time.monotonic() - began:.2f} s"
            loaded, drawn = [], []
            for _ in range(arguments.times):
                loaded.append(browser.open(page))
                began = time.monotonic()
                browser.evaluate(FIRST_PLOT)
                drawn.append(loaded[-1] + time.monotonic() - began)
            printed = base64.b64decode(browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
            sheets = len(re.findall(rb"/Type\s*/Page\b", printed))
            size, seconds = page.stat().st_size, statistics.median(drawn)
            missed |= size > BYTES or seconds > SECONDS or arguments.overview and sheets > SHEETS
            print(f"{file.name}: {size / 1e6:.2f} MB{made}, loaded {statistics.median(loaded):.2f} s, plot {seconds:.2f} s, {sheets} sheets")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
