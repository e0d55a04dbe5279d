#!/usr/bin/env python3
"""Whether replayed traces stand for programs that nobody here wrote, and predict what the same
program does another way; as root.

    cargo build --release
    python3 bench/replay.py --dir DIRECTORY --venv FOLDER

`advise` runs each program under three memory limits, from an empty cache, and replays its trace.
Bars: device bytes of the replay by the program's own method within 5 % of the program's; where the
program can read its file another way, the replay by that method within 15 % of what it then reads
from the device, and the same one of the two ways quicker. Times within 10 % of each other have no
order. FOLDER gets the programs of programs.txt. The exit status is 1 if a bar is missed that
programs.py does not know to be missed, or was not measured, and 3 if programs are missing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import programs
import traces

PAGEWISE = Path(__file__).resolve().parent.parent / "target/release/pagewise"
SELF, OTHER, SAME_TIME = 0.05, 0.15, 1.1
RUNS = 3
MISSING, TRIES = 3, 4
# The exit status of pagewise without the right to see calls.
NOT_SEEN = 3


def in_venv(folder):
    """Go on as a Python that has the programs; it is made if it is not there."""
    python = folder / "bin/python3"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, stdout=subprocess.DEVNULL)
        wanted = Path(programs.__file__).with_suffix(".txt")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", wanted], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: programs: {error}")
        sys.exit(MISSING)
    if Path(sys.prefix).resolve() != folder.resolve():
        os.execv(python, [python, *sys.argv])


def installed():
    """End if a command of the programs is not there."""
    lacking = programs.lacking()
    if lacking:
        print(f"skipped: programs: not installed: {', '.join(lacking)}")
        sys.exit(MISSING)


def seeing(pagewise, folder):
    """End if calls of programs cannot be seen."""
    trace = Path(folder) / "seeing.trace"
    ended = run([pagewise, "record", "-o", trace, "--", "true"])
    trace.unlink(missing_ok=True)
    if ended.returncode == NOT_SEEN:
        print(f"skipped: programs: {ended.stderr.strip()}")
        sys.exit(MISSING)


def run(words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


def given(option, files):
    return [word for file in files for word in (option, file)]


def real_run(pagewise, folder, files, command, memory):
    """What the device reads for a run of the command from an empty cache, and its time, as its
    recording says."""
    trace = folder / "real.trace"
    ended = run([pagewise, "record", *given("--cold", files), "--wait", "60min", "--memory", memory, "-o", trace, "--", *command])
    if not trace.exists():
        raise RuntimeError(ended.stderr.strip())
    program = traces.trailer(trace)["program"]
    trace.unlink()
    return program["device_read_bytes"], program["wall_ns"]


def advised(pagewise, folder, program, memory):
    """The judged JSON of advise, or why there is none."""
    out = folder / "advise.jsonl"
    windows = ["--windows"] if program.windows else []
    methods = ["--methods", program.other_method or "pread"]
    words = [pagewise, "advise", "--wait", "60min", "--evict", "--quick", "--memory", memory, *windows, *given("--file", program.files), *methods]
    ended = run([*words, "--json", "--no-html", "-o", out, "--", *program.command])
    for left in folder.glob("advise*"):
        left.unlink()
    return json.loads(ended.stdout) if ended.stdout else ended.stderr.strip()


def measured(judged, method):
    cells = (cell for cell in judged["cells"] if cell["method"] == method and cell["role"] == "measured" and cell["evidence"])
    return next(((cell["evidence"]["device_read_bytes"], cell["total_ns"]) for cell in cells), None)


def order(own_ns, other_ns):
    if max(own_ns, other_ns) <= SAME_TIME * min(own_ns, other_ns):
        return "same"
    return "slower" if other_ns > own_ns else "quicker"


def row(pagewise, folder, program, memory):
    """A row of the table, and whether it reaches the bars; `None` if nothing was measured."""
    for _ in range(TRIES):
        judged = advised(pagewise, folder, program, memory)
        if isinstance(judged, str):
            return f"refused: {judged}", None
        own = judged["self_replay"]
        # Others may disturb every sample of a try.
        if own["replayed_bytes"] is not None:
            break
    if own["program_bytes"] is None or own["replayed_bytes"] is None:
        return own["sentence"], None
    apart = own["replayed_bytes"] / own["program_bytes"] - 1
    shown = f"{own['program_bytes'] / 1e6:.1f} MB | {own['method']} {apart * 100:+.1f} %"
    reached = abs(apart) <= SELF
    if not program.other:
        return f"{shown} | - | -", reached
    # In turn, as either may find what the other left in the kernel's memory of evicted pages.
    pairs = [[real_run(pagewise, folder, program.files, way, memory) for way in (program.command, program.other)] for _ in range(RUNS)]
    (_, own_ns), (real_bytes, real_ns) = ([statistics.median(pair[side][figure] for pair in pairs) for figure in (0, 1)] for side in (0, 1))
    there = f"{real_bytes / 1e6:.1f} MB, {real_ns / own_ns:.2f}x as long"
    found, replayed = measured(judged, program.other_method), measured(judged, own["method"])
    if not found or not replayed:
        # It is shown where the trace stands, unless others disturbed all of its samples.
        return f"{shown} | not shown | {there}", None if reached else False
    other = found[0] / real_bytes - 1
    orders = order(replayed[1], found[1]), order(own_ns, real_ns)
    reached &= abs(other) <= OTHER and ("same" in orders or orders[0] == orders[1])
    return f"{shown} | {program.other_method} {other * 100:+.1f} %, {found[1] / replayed[1]:.2f}x as long | {there}", reached


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--dir", default=".", type=Path, help="where the files are made, on a disk")
    arguments.add_argument("--venv", type=Path, help="a virtual environment for the programs, made if it is not there")
    arguments.add_argument("--only", nargs="*", default=list(programs.PROGRAMS), help="programs to be run")
    arguments.add_argument("--memory", nargs="*", help="limits to be measured, of those of the programs")
    arguments.add_argument("--pagewise", default=PAGEWISE, type=Path)
    arguments = arguments.parse_args()
    if arguments.venv:
        in_venv(arguments.venv)
    installed()
    seeing(arguments.pagewise, arguments.dir)
    all_reached, unmeasured = True, []
    print("| program | memory | read from the device | own method replayed | other method replayed, of what it really reads | the program itself that way | |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.only:
        with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
            folder = Path(folder).resolve()
            program = programs.PROGRAMS[name](folder)
            os.sync()
            for memory in (limit for limit in program.limits if limit in (arguments.memory or program.limits)):
                shown, reached = row(arguments.pagewise, folder, program, memory)
                known = program.known_misses.get(memory)
                # What is known excuses a bar that is missed, and nothing that was not measured.
                all_reached &= bool(reached) or (reached is False and known is not None)
                missed = "**missed**" + (f": {known}" if known else "")
                print(f"| {name} | {memory} | {shown} | {'reached' if reached else 'not measured' if reached is None else missed} |", flush=True)
                if reached is None:
                    unmeasured.append(f"{name} under {memory}")
    if unmeasured:
        print(f"inconclusive: without valid samples: {', '.join(unmeasured)}")
    return 0 if all_reached else 1


if __name__ == "__main__":
    sys.exit(main())
