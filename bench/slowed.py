#!/usr/bin/env python3
"""How often a worker that is slower by a known factor is found behind, and whether intervals hold
the factor.

    cargo build --release
    python3 bench/slowed.py --runs 20
    python3 bench/slowed.py --runs 20 --full --slowed 5
    python3 bench/slowed.py --runs 100 --itself

workers/c/minimal.c is built as it is and once for each factor: after each operation it then spins
for so many per cent of the time that the operation took, which is in the same timed region. Each
run compares all of them on warm random reads of 16 x 16 KiB in one thread, with a seed of its own.
Prints a table for bench/RESULTS.md; exit status 1 if a bar is missed: a quick run finds 20 % and 50
% in 95 of 100, a full one 5 % in 90 of 100, and 95 of 100 intervals hold the factor. With --itself,
the program is compared with a second copy of it, and the bar is a winner in at most 2 of 100 runs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
OPERATION = "operate(first + done++), after = now(), took = after - took;"
SPIN = """operate(first + done++), after = now(), took = after - took;
        for (u64 until = after + took * SLOWED / 100; after < until;) after = now();
        took += took * SLOWED / 100;"""
FOUND_AT_LEAST = {False: {20: 0.95, 50: 0.95}, True: {5: 0.90}}
HELD_AT_LEAST = 0.95
WINNERS_AT_MOST = 0.02


def build(folder, slowed):
    text = (HERE.parent / "workers/c/minimal.c").read_text()
    if OPERATION not in text:
        sys.exit("workers/c/minimal.c has no such operation: mend bench/slowed.py")
    source, program = folder / f"slowed{slowed}.c", folder / f"slowed{slowed}"
    source.write_text(text.replace(OPERATION, SPIN))
    subprocess.run(["cc", "-O2", f"-DSLOWED={slowed}", "-o", program, source], check=True)
    return program


def compare(arguments, folder, number, programs):
    file = folder / f"{number}.jsonl"
    words = [arguments.pagewise, "run", "read", "--out", file, "--seed", str(arguments.seed + number), "--json"]
    words += ["--full"] if arguments.full else ["--quick"]
    words += ["--workload", "random-read", "--cache", "warm", "--threads", "1", "--file-size", "256MiB", "--no-ceilings"]
    for name, program in programs.items():
        words += ["--worker", f"{name}={program}"]
    words += ["--methods", ",".join(f"{name}/get" for name in programs)]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if ended.returncode not in (0, 1):
        sys.exit(f"pagewise run: {ended.returncode}: {ended.stderr}")
    judged = json.loads(ended.stdout)
    file.unlink()
    return judged["comparisons"][0], judged["run"]["elapsed_ns"] / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--slowed", type=lambda text: [int(word) for word in text.split(",")], default=[5, 10, 20, 50],
                        help="per cent, as in 5,20")
    parser.add_argument("--itself", action="store_true", help="against a second copy, and no slowed one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pagewise", default=str(HERE.parent / "target/release/pagewise"))
    parser.add_argument("--dir", default=".", help="folder for the files")
    arguments = parser.parse_args()
    arguments.pagewise = os.path.abspath(arguments.pagewise)
    if arguments.itself:
        arguments.slowed = []
    seen = {slowed: {"behind": 0, "stated": 0, "held": 0, "rounds": []} for slowed in arguments.slowed}
    false_best, seconds, rounds_of_itself = 0, [], []
    with tempfile.TemporaryDirectory(dir=arguments.dir, prefix=".slowed-") as folder:
        folder = Path(folder).resolve()
        programs = {f"s{slowed}": build(folder, slowed) for slowed in [0, *arguments.slowed]}
        if arguments.itself:
            programs["copy"] = shutil.copy(programs["s0"], folder / "copy")
        for number in range(arguments.runs):
            comparison, took = compare(arguments, folder, number, programs)
            seconds.append(took)
            false_best += comparison["best"] not in ((None,) if arguments.itself else (None, "s0/get"))
            rounds_of_itself.append(comparison["rounds"])
            for slowed, tally in seen.items():
                ratios = [ratio for ratio in comparison["ratios"] if ratio["method"] == f"s{slowed}/get"]
                if not ratios:
                    continue
                # One that was eliminated early is compared with the leader of that time.
                ratio = ratios[0]
                leader = int(ratio["leader"].split("/")[0].removeprefix("s"))
                tally["behind"] += ratio["place"] == "behind"
                tally["rounds"].append(ratio["rounds"])
                if ratio["low"] is not None:
                    tally["stated"] += 1
                    tally["held"] += ratio["low"] <= (100 + slowed) / (100 + leader) <= ratio["high"]
    if arguments.itself:
        rounds = sorted(rounds_of_itself)
        print(f"{arguments.runs} runs of {sorted(seconds)[len(seconds) // 2]:.0f} s (median) and {rounds[len(rounds) // 2]} rounds "
              f"(median) of a program against itself: a winner in {false_best}.")
        sys.exit(1 if false_best > WINNERS_AT_MOST * arguments.runs else 0)
    print("| slower by | found behind | interval holds it | rounds, median |\n| --- | --- | --- | --- |")
    missed = False
    for slowed, tally in seen.items():
        rounds = sorted(tally["rounds"])
        print(f"| {slowed} % | {tally['behind']} of {arguments.runs} | {tally['held']} of {tally['stated']} | "
              f"{rounds[len(rounds) // 2] if rounds else '–'} |")
        missed |= tally["behind"] < FOUND_AT_LEAST[arguments.full].get(slowed, 0) * arguments.runs
        missed |= tally["held"] < HELD_AT_LEAST * tally["stated"]
    kind = "full" if arguments.full else "quick"
    print(f"\n{arguments.runs} {kind} runs of {sorted(seconds)[len(seconds) // 2]:.0f} s (median); "
          f"a slowed one was called best in {false_best}.")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
