#!/usr/bin/env python3
"""Kills pagewise at random moments, over all questions and conditions, and looks at what is left.

    cargo build --release
    python3 bench/kills.py --kills 1000 --seed 1

A series is one run: begun, killed, resumed, killed again, and at last resumed to its end. A kill
hits the supervisor, a worker, or both, at a moment that the seed draws: any, or just behind a line
of the run file. After each kill either `pagewise clean` or the next start must leave nothing: no
file, no cgroup, readahead as before, no process, an empty journal, no half-built worker. Each line
that stood in the run file before the kill must stand there afterwards. At the end every (cell,
round, attempt) is there once, and the report of the file equals that of the same samples in a file
that was never interrupted, apart from what speaks of resumption.

Prints a table for bench/RESULTS.md; exit status 1 if anything was left, lost, twice or judged
otherwise. Conditions that this machine does not have are skipped and named. Moments are drawn from
the seed, but what a kill hits there is up to the machine.
"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MARK = "PAGEWISE_KILLS"
PATIENCE_S = 150
READS = ["--workload", "random-read", "--threads", "1", "--rounds", "7", "--sample", "1ms"]

# Name, words behind `pagewise`, worker options that --resume wants typed again, what it needs.
CONDITIONS = [
    ("read, warm", ["run", "read", *READS, "--methods", "pread,mmap", "--cache", "warm", "--file-size", "8MiB"], [], ""),
    ("read, cold", ["run", "read", *READS, "--methods", "pread,uring:direct+depth=4", "--cache", "cold", "--read-size", "4KiB",
                    "--no-ceilings", "--file-size", "16MiB"], [], ""),
    ("scan", ["run", "scan", "--methods", "mmap:in-place,read:buffer=64KiB", "--cache", "warm", "--rounds", "7", "--file-size",
              "4MiB"], [], ""),
    ("append", ["run", "append", "--methods", "mmap,pwrite", "--rounds", "7", "--file-size", "1MiB", "--record-size", "1KiB",
                "--sync", "none,end", "--no-ceilings"], [], ""),
    ("fill", ["run", "fill", "--methods", "mmap,mmap:populate-write", "--rounds", "7", "--file-size", "1MiB", "--block-size",
              "4KiB", "--no-ceilings"], [], ""),
    ("elimination", ["run", "read", "--workload", "random-read", "--threads", "1", "--sample", "1ms", "--methods",
              "pread,mmap,mmap:random,pread:random", "--cache", "warm", "--file-size", "8MiB", "--budget", "3s"], [], ""),
    ("memory limit, device cap", ["run", "read", *READS, "--methods", "pread", "--cache", "warm", "--memory", "12MiB", "--file-size",
                                  "20MiB", "--device-cap", "read-iops=100000", "--no-ceilings"], [], "cgroup"),
    ("readahead", ["run", "read", *READS, "--methods", "pread,mmap", "--cache", "cold", "--read-size", "4KiB", "--reads-per-op", "4",
                   "--file-size", "8MiB", "--readahead", "64KiB,256KiB", "--no-ceilings"], [], "readahead"),
    ("cliff", ["run", "cliff", "--quick", "--methods", "mmap,pread", "--memory", "12MiB", "--span", "0.5x,2x", "--sample",
               "1ms"], [], "cgroup"),
    ("own worker", ["run", "read", *READS, "--methods", "pread,mine/pread", "--cache", "warm", "--no-ceilings", "--file-size", "4MiB"],
     ["--worker", "mine={pagewise} worker"], ""),
    ("jvm", ["run", "read", *READS, "--methods", "jvm/pread", "--cache", "warm", "--no-ceilings", "--file-size", "4MiB", "--stall"], [],
     "jvm"),
    ("go", ["run", "read", *READS, "--methods", "go/pread,pread", "--cache", "warm", "--no-ceilings", "--file-size", "4MiB"], [], "go"),
    ("python", ["run", "read", *READS, "--methods", "python/pread,pread", "--cache", "warm", "--no-ceilings", "--file-size", "4MiB"],
     [], "python"),
    ("conformance", ["conformance", "--dir", ".", "--", "{pagewise}", "worker"], [], ""),
]


class Defect(Exception):
    """What must not be."""


def processes(token):
    """Processes that a place has started, with their command lines."""
    found = {}
    wanted = f"{MARK}={token}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if wanted not in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                continue
            state = Path(f"/proc/{entry}/stat").read_text().rsplit(") ", 1)[1][0]
            if state not in "ZX":
                found[int(entry)] = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, IndexError):
            continue
    return found


def children(pid):
    """What a process has started and what that has, found quickly: a worker lives for
    milliseconds."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += [int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    except OSError:
        return found
    return found + [grandchild for child in found for grandchild in children(child)]


def whole_lines(path):
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    return text[: text.rfind(b"\n") + 1].splitlines(keepends=True)


def grown(path, behind):
    """Whether a run file has more lines than `behind`; it is read only when its size has
    changed."""
    seen = [-1, 0]

    def moment():
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return False
        if size != seen[0]:
            seen[:] = [size, len(whole_lines(path))]
        return seen[1] > behind

    return moment


def kind_of(line):
    return json.loads(line)["record"]["kind"]


class Place:
    """A directory to run in, with state and cache of its own."""

    def __init__(self, session, condition):
        self.session = session
        self.name, self.words, self.again, _ = condition
        self.root = Path(tempfile.mkdtemp(prefix="pagewise-kills-", dir=session.directory))
        session.place = self
        self.token = self.root.name
        self.work = session.mounted / self.token if self.name == "readahead" else self.root / "work"
        for directory in (self.work, self.root / "state", self.root / "cache"):
            directory.mkdir(mode=0o700)
        # Toolchains build once; every fourth place builds anew, so that builds are killed too.
        builds = self.name in ("jvm", "go", "python") and session.random.random() < 0.25
        self.cache = self.root / "cache" if builds else session.cache
        self.run_file = self.work / "run.jsonl"
        self.announced = set()
        self.readahead = session.readahead()

    def fill_in(self, words):
        return [word.replace("{pagewise}", str(self.session.pagewise)) for word in words]

    def command(self, resumed):
        pagewise = [str(self.session.pagewise)]
        if self.name == "conformance":
            return pagewise + self.fill_in(self.words)
        again = self.fill_in(self.again)
        if resumed:
            return pagewise + ["run", "--resume", "--out", "run.jsonl"] + (again if self.session.type_again else [])
        return pagewise + self.fill_in(self.words) + again + ["--out", "run.jsonl"]

    def start(self, command):
        environment = dict(os.environ, PAGEWISE_STATE_DIR=str(self.root / "state"), XDG_CACHE_HOME=str(self.cache))
        environment[MARK] = self.token
        with open(self.root / "said", "wb") as said:
            return subprocess.Popen(command, cwd=self.work, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def said(self):
        return (self.root / "said").read_text(errors="replace")

    def journal(self):
        entries = []
        try:
            lines = (self.root / "state" / "journal").read_bytes().splitlines()
        except FileNotFoundError:
            return entries
        for line in lines:
            try:
                entries.append(json.loads(line))
            except ValueError:
                pass
        return entries

    def note(self):
        """Remembers what the journal announces, since whoever sweeps empties it."""
        self.announced.update(entry["path"] for entry in self.journal() if entry["made"] in ("file", "group"))

    def expect_no_process(self):
        deadline = time.monotonic() + 30
        while alive := processes(self.token):
            if time.monotonic() > deadline:
                for pid in alive:
                    os.kill(pid, signal.SIGKILL)
                raise Defect(f"processes live on: {alive}")
            time.sleep(0.005)

    def expect_nothing_left(self):
        if self.journal():
            raise Defect(f"the journal is not empty: {self.journal()}")
        left = [path for path in self.announced if os.path.lexists(path)]
        left += [str(path) for path in self.work.rglob(".pagewise-*")]
        left += [str(path) for path in self.cache.rglob(".tmp-*")]
        if left:
            raise Defect(f"left behind: {left}")
        if self.session.readahead() != self.readahead:
            raise Defect(f"readahead is {self.session.readahead()} KiB, it was {self.readahead} KiB")
        self.announced.clear()

    def finish(self, command):
        child = self.start(command)
        try:
            child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise Defect(f"{command} takes longer than {PATIENCE_S} s") from None
        return child.returncode

    def clean(self):
        self.note()
        status = self.finish([str(self.session.pagewise), "clean"])
        if status != 0:
            raise Defect(f"clean ends with {status}: {self.said()}")
        self.expect_nothing_left()

    def remove(self):
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)


class Session:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.pagewise = Path(options.pagewise).resolve()
        self.directory = Path(tempfile.mkdtemp(prefix="pagewise-kills-", dir=options.dir)).resolve()
        self.cache = self.directory / "cache"
        self.cache.mkdir(mode=0o700)
        self.mounted = self.directory / "mounted"
        self.setting = None
        # Whether --resume wants the options of workers again; a pagewise that has them from the run
        # file refuses them.
        self.type_again = True
        self.defects = []
        self.place = None
        self.table = collections.OrderedDict()

    def readahead(self):
        return self.setting.read_text().strip() if self.setting else None

    def mount(self):
        """A filesystem on a loop device, so that nobody else's readahead is changed."""
        self.mounted.mkdir()
        image = self.directory / "image"
        with open(image, "wb") as file:
            file.truncate(256 << 20)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, **quiet)
        subprocess.run(["mount", "-o", "loop", str(image), str(self.mounted)], check=True, **quiet)
        device = os.stat(self.mounted).st_dev
        self.setting = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/bdi/read_ahead_kb")
        if not self.setting.exists():
            self.setting = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue/read_ahead_kb")

    def give_up(self):
        """Ends what runs, and has pagewise remove what that made."""
        if self.place and self.place.root.exists():
            for pid in processes(self.place.token):
                os.kill(pid, signal.SIGKILL)
            self.place.expect_no_process()
            self.place.finish([str(self.pagewise), "clean"])

    def close(self):
        if self.setting:
            subprocess.run(["umount", str(self.mounted)], check=False)
        if not self.defects:
            shutil.rmtree(self.directory, ignore_errors=True)

    def lacking(self, needs):
        if needs in ("", "cgroup"):
            return None
        if needs == "readahead":
            if os.geteuid() != 0:
                return "only root can mount and set readahead"
            try:
                self.mount()
            except (OSError, subprocess.CalledProcessError) as error:
                return f"no filesystem of its own: {error}"
            return None
        program = {"jvm": "javac", "go": "go", "python": "python3"}[needs]
        return None if shutil.which(program) else f"no {program}"

    def possible(self):
        """Conditions that this machine has, each with how long an undisturbed run takes."""
        found = []
        for condition in CONDITIONS:
            if self.options.only and condition[0] not in self.options.only:
                continue
            reason, took = self.lacking(condition[3]), 0.0
            if reason is None:
                place = Place(self, condition)
                began = time.monotonic()
                status = place.finish(place.command(resumed=False))
                took = time.monotonic() - began
                print(f"{condition[0]}: an undisturbed run takes {took:.1f} s", file=sys.stderr, flush=True)
                if status not in (0, 1):
                    reason = place.said().strip().splitlines()[-1:]
                else:
                    unavailable = b'"unavailable"' in b"".join(whole_lines(place.run_file))
                    reason = "unavailable here" if unavailable else None
                place.clean()
                place.remove()
            if reason:
                print(f"skipped: {condition[3] or 'kills'}: {condition[0]}: {reason}", flush=True)
                continue
            found.append((condition, took))
            self.table[condition[0]] = collections.Counter()
        return found


def hit(session, place, child, counts, began_lines, took):
    """Waits for the moment and kills; the lines that stood in the run file, or None if the run was
    over before."""
    draw = session.random
    if draw.random() < 0.5:
        # Just behind a line of the run file, wherever that is.
        behind = began_lines + draw.randrange(12)
        wait_s, moment = draw.random() * 0.004, grown(place.run_file, behind)
    else:
        deadline = time.monotonic() + draw.random() * took * 1.1
        wait_s, moment = 0.0, lambda: time.monotonic() >= deadline
    while not moment():
        if child.poll() is not None:
            return None
        time.sleep(0.001)
    time.sleep(wait_s)
    victim = draw.choice(["supervisor", "supervisor", "worker", "both"])
    workers = []
    if victim != "supervisor":
        # There is none between two samples.
        while child.poll() is None and not children(child.pid):
            time.sleep(0.0002)
        time.sleep(draw.random() * 0.004)
        workers = children(child.pid)
        if not workers:
            victim = "supervisor"
    if child.poll() is not None:
        return None
    place.note()
    lines = whole_lines(place.run_file)
    if victim in ("supervisor", "both"):
        child.kill()
    for pid in workers:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    counts["kills"] += 1
    counts[victim] += 1
    if not lines and place.name != "conformance":
        counts["before the header"] += 1
    if victim == "worker":
        return lines
    child.wait()
    place.expect_no_process()
    place.note()
    return lines


def expect_kept(lines, place):
    now = whole_lines(place.run_file)
    if now[: len(lines)] != lines:
        raise Defect(f"of {len(lines)} lines that were written before a kill some are lost or changed")


def series(session, condition, took, counts, left):
    """One run with a few kills; how many there were."""
    place = Place(session, condition)
    kept, kills = [], 0
    try:
        for _ in range(min(left, 1 + session.random.randrange(4))):
            begun = bool(whole_lines(place.run_file))
            if place.run_file.exists() and not begun:
                place.run_file.unlink()
            child = place.start(place.command(resumed=begun))
            before = counts["kills"]
            lines = hit(session, place, child, counts, len(kept), took)
            if lines is not None and child.poll() is None:
                # Only a worker was killed: the run goes on to its end.
                try:
                    child.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
                    raise Defect(f"the run hangs behind a killed worker: {place.said()}") from None
            kills += counts["kills"] - before
            if lines is None or child.returncode >= 0:
                if child.returncode == 2 and begun and session.type_again and place.again:
                    session.type_again = False
                    continue
                if child.returncode not in (0, 1):
                    raise Defect(f"{' '.join(place.command(begun))} ends with {child.returncode}: {place.said()}")
            expect_kept(kept, place)
            if lines is not None:
                expect_kept(lines, place)
            kept = whole_lines(place.run_file)
            if session.random.random() < 0.5:
                place.clean()
            if is_complete(kept):
                break
        finish(session, place, kept, counts)
        counts["series"] += 1
        place.remove()
    except Defect as defect:
        counts["defects"] += 1
        session.defects.append((condition[0], str(defect), str(place.root)))
        print(f"DEFECT: {condition[0]}: {defect} (kept in {place.root})", flush=True)
    return kills


def is_complete(lines):
    return bool(lines) and kind_of(lines[-1]) == "end"


def finish(session, place, kept, counts):
    """Resumes to the end, and looks at the whole."""
    if place.name == "conformance":
        status = place.finish(place.command(resumed=False))
        if status not in (0, 1):
            raise Defect(f"conformance ends with {status}: {place.said()}")
        place.expect_no_process()
        # A trial that ended well has removed its files, and its journal still names them.
        place.clean()
        return
    if is_complete(kept):
        # The last kill may have come between the end of the run and its sweep, which is the next
        # start's business then.
        place.clean()
    else:
        if place.run_file.exists() and not kept:
            place.run_file.unlink()
        status = place.finish(place.command(resumed=bool(kept)))
        if status == 2 and kept and session.type_again and place.again:
            session.type_again = False
            status = place.finish(place.command(resumed=True))
        if status not in (0, 1):
            raise Defect(f"the resumption ends with {status}: {place.said()}")
        expect_kept(kept, place)
    place.expect_no_process()
    # What the last kill left was the business of the start that has just ended.
    place.expect_nothing_left()
    lines = whole_lines(place.run_file)
    if not is_complete(lines) or b"".join(lines) != place.run_file.read_bytes():
        raise Defect("the run was resumed and has no end")
    counts["samples"] += expect_each_once(lines, counts)
    expect_same_verdict(session, place, lines)


def is_whole(plan, cell, found):
    """All rounds of a run with a fixed number; of an elimination the first five, and no gap before
    those at its end."""
    rounds, is_eliminating = plan["rounds"], plan.get("budget") is not None
    first = min(rounds, 5) if is_eliminating else rounds
    if cell.endswith("/ceiling"):
        return found == sorted({sample * (first - 1) // 2 for sample in range(3)} if first > 3 else set(range(first)))
    regular = [number for number in found if number < rounds]
    return regular == list(range(len(regular))) and (len(regular) >= first if is_eliminating else len(regular) == first)


def expect_each_once(lines, counts):
    records = [json.loads(line)["record"] for line in lines]
    samples = [record for record in records if record["kind"] == "sample"]
    tries = collections.Counter((sample["cell"], sample["round"], sample["attempt"]) for sample in samples)
    twice = [key for key, count in tries.items() if count > 1]
    if twice:
        counts["twice"] += len(twice)
        raise Defect(f"samples stand twice: {twice}")
    ended = {sample["cell"] for sample in samples if sample["outcome"]["outcome"] != "taken"}
    plan = records[0]["plan"]
    by_cell = collections.defaultdict(set)
    for sample in samples:
        by_cell[sample["cell"]].add(sample["round"])
    short = [
        (cell, sorted(found))
        for cell, found in by_cell.items()
        if cell not in ended and not is_whole(plan, cell, sorted(found))
    ]
    if short:
        counts["lost"] += len(short)
        raise Defect(f"rounds are missing: {short}")
    planned = len(records[0]["plan"]["cells"])
    if len(by_cell) < planned:
        counts["lost"] += planned - len(by_cell)
        raise Defect(f"of {planned} cells {len(by_cell)} have samples")
    counts["cells ended by a kill"] += len(ended)
    return len(samples)


def expect_same_verdict(session, place, lines):
    """The same samples in a file that was never interrupted are judged alike."""
    whole = place.work / "unbroken.jsonl"
    whole.write_bytes(b"".join(line for line in lines if kind_of(line) != "resumed"))

    def judged(path, *how):
        done = subprocess.run([str(session.pagewise), "report", str(path), *how], capture_output=True, check=False)
        if done.returncode not in (0, 1):
            raise Defect(f"report of {path.name} ends with {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def without_resumption(text):
        run = json.loads(text)
        run["run"].pop("resumptions")
        run["warnings"] = [warning for warning in run["warnings"] if "interrupted and resumed" not in warning]
        return run

    if without_resumption(judged(place.run_file, "--json")) != without_resumption(judged(whole, "--json")):
        raise Defect("the verdict is another than that of the same samples without interruption")
    if judged(place.run_file, "--csv=samples") != judged(whole, "--csv=samples"):
        raise Defect("the CSV is another than that of the same samples without interruption")


COLUMNS = ["series", "kills", "supervisor", "worker", "both", "before the header", "samples", "cells ended by a kill", "twice",
           "lost", "defects"]


def print_table(session, seconds):
    total = collections.Counter()
    print("\n| conditions | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for name, counts in session.table.items():
        print(f"| {name} | " + " | ".join(str(counts[column]) for column in COLUMNS) + " |")
        total.update(counts)
    print("| all | " + " | ".join(str(total[column]) for column in COLUMNS) + " |")
    print(f"\nSeed {session.options.seed}, {seconds:.0f} s; worker options are "
          f"{'typed again' if session.type_again else 'refused'} on --resume.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pagewise", default=root / "target" / "release" / "pagewise")
    parser.add_argument("--dir", default=".", help="where places are made")
    parser.add_argument("--only", action="append", help="one of the conditions; may be given again")
    options = parser.parse_args()
    session = Session(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began = time.monotonic()
    try:
        conditions = session.possible()
        if not conditions:
            print("kills: none of the conditions is possible here", file=sys.stderr)
            return 2
        kills, turn = 0, 0
        while kills < options.kills and turn < 20 * options.kills:
            condition, took = conditions[turn % len(conditions)]
            turn += 1
            kills += series(session, condition, took, session.table[condition[0]], options.kills - kills)
            if turn % len(conditions) == 0:
                print(f"{kills} kills in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        print_table(session, time.monotonic() - began)
    except (KeyboardInterrupt, SystemExit):
        session.give_up()
        raise
    finally:
        session.close()
    return 1 if session.defects else 0


if __name__ == "__main__":
    sys.exit(main())
