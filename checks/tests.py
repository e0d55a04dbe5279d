#!/usr/bin/env python3
"""Builds, lints and runs the tests of the workspace and says how they ended: passed, failed,
unsteady, skipped.

    checks/tests.py                   # everything
    checks/tests.py --build           # no test; builds, lints and documents
    checks/tests.py --gate            # only what needs no machine
    checks/tests.py --soak            # what takes long, instead; with words, the parts named so
    checks/tests.py cheats record::   # only the tests whose names contain one of these words

A test *without a machine* (units, properties, golden files, sessions with a worker that is a
thread, arrows, refusals) computes, or starts a command that measures nothing; `checks/layers.py`
says which ones do. Those of a program run once, in one process; a failure is red. A test *of a
machine* measures, reads files or limits memory. Each of these is a process of its own. One that
fails runs again when nothing else does, at most twice. If it fails three times it has failed. If it
passes then, it is *unsteady*: the end of the output lists it with what it printed when it failed,
and more than UNSTEADY_MAX are red. One that says `inconclusive: ...`, because others used the
machine, is unsteady too if they did so at each of its tries, by the counters of the kernel while no
test ran.

The *soak* is what neither of them holds: rates that are known beforehand, many kills at random
moments, long fuzz, every simulation of the judge, each check of proof turned off once, which a test
must notice, the packages, the recipes of many machines, and the replays of real programs.

A test that cannot run here prints `skipped: NEED: DETAIL`. `checks/needs` lists the needs that may
be missing, and when.

Exit status: 0 all is well, 1 red, 2 wrong use. `target/check/tests.json` has the figures,
`target/check/output` what each test printed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import layers

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "target" / "check"

# Test programs whose tests wait until nothing else runs, and those that only a soak runs.
ALONE = {"pagewise/alone", "pagewise/soak"}
SOAK = {"pagewise/soak"}
# Tests of a machine that only compute and write elsewhere, where `check` gave the others a device
# of their own.
COMPUTING = r"^pagewise/page |^pagewise/together trust_numbers::"
# Tests that wait for each other, by their names: one browser at a time; the first build fills Go's
# cache for the others.
ONE_BY_ONE = ("pagewise/page ", r"toolchain::tests::machine::|_in_go_|_worker_in_go")
# What a soak does: kills by each of two programs, cases of all targets that are fuzzed; and how
# long one part may take.
SOAK_KILLS, SOAK_CASES = 500, 1_000_000
SOAK_PATIENCE_S = 4 * 3600
# Scripts of a soak, one after another: they build and prove packages, and prove the recipes of many
# machines. And their exit status if something is missing, which they name.
SCRIPTS = (
    *(f"packaging/{name}" for name in ("static", "deb", "wheel", "seccomp", "image", "crates")),
    *(f"checks/fleet/{name}" for name in ("ssh", "ansible", "slurm", "kubernetes", "queries")),
)
NOTHING_DONE = 3

# Runs at most of a test that fails.
TRIES = 3
UNSTEADY_MAX = 3
# Only a fault takes longer: commands within tests have bounds of 150 s each.
PATIENCE_S = 900
# Lines that are shown of what a test printed.
SHOWN_LINES = 60

# A test that leaves the CPUs to all others waits for them: at most this many times as long as any
# other may take.
IDLE_PATIENCE = 4

# The processes of tests that run now, by their process groups; and those of them that leave the
# CPUs to all others.
running = set()
left_idle = set()
# While it is set there are tests that want the machine for themselves. The lock is held while a
# test begins and while it changes.
measuring = threading.Event()
beginning = threading.Lock()


@dataclass
class Program:
    """A test program as cargo built it."""

    name: str  # package/target
    path: str
    directory: str

    @functools.cached_property
    def tests(self):
        """The names of its tests."""
        listed = subprocess.run([self.path, "--list", "--format=terse"], cwd=self.directory, capture_output=True, text=True)
        if listed.returncode != 0:
            sys.exit(f"checks: {self.name} does not list its tests: {listed.stderr}")
        return [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]

    @functools.cached_property
    def of_machine(self):
        return [name for name in self.tests if layers.needs_machine(self, name)]

    @functools.cached_property
    def without_machine(self):
        of_machine = set(self.of_machine)
        return [name for name in self.tests if name not in of_machine]


@dataclass
class Attempt:
    """One run of a test."""

    passed: bool
    output: str
    seconds: float
    # Others used the machine just before; None: other tests may have.
    busy: bool | None = None

    @property
    def inconclusive(self):
        return not self.passed and self.busy is not False and "inconclusive: " in self.output


@dataclass
class Test:
    """A command that passes or fails, and its runs so far."""

    name: str
    command: list
    directory: str
    attempts: list = field(default_factory=list)
    patience_s: int = PATIENCE_S
    skipping: int | None = None  # An exit status that is a skip, if a line names the need.

    @property
    def state(self):
        if not self.attempts[-1].passed:
            return "unsteady" if len(self.attempts) == TRIES and all(attempt.inconclusive for attempt in self.attempts) else "failed"
        if len(self.attempts) > 1:
            return "unsteady"
        return "skipped" if skips(self.attempts[-1].output) else "passed"

    def run(self, busy=None, idle=False):
        """Runs it to its end, or until it takes too long; its processes end with it. If `idle`, it
        leaves the CPUs to all others while these measure."""
        started = time.monotonic()
        with beginning:
            idle = idle and measuring.is_set()
            child = subprocess.Popen(
                self.command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                preexec_fn=functools.partial(lead, idle),
            )
            running.add(child.pid)
            if idle:
                left_idle.add(child.pid)
        patience_s = self.patience_s * (IDLE_PATIENCE if idle else 1)
        try:
            output, _ = child.communicate(timeout=patience_s)
            ended = "" if child.returncode >= 0 else f"\nended by {signal.Signals(-child.returncode).name}\n"
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, _ = child.communicate()
            ended = f"\nno end within {patience_s} s\n"
        running.discard(child.pid)
        left_idle.discard(child.pid)
        text = output.decode(errors="replace") + ended
        passed = child.returncode == 0 or (child.returncode == self.skipping and bool(skips(text)))
        self.attempts.append(Attempt(passed, text, time.monotonic() - started, busy))
        return self


def lead(idle):
    """In the process of a test, before its program: makes it lead a process group, so that all of
    it can be ended. As the leader of a session it could get a terminal that it opens."""
    os.setpgrp()
    if idle:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def skips(output):
    """The needs that a test said to lack, each with the rest of its line."""
    return re.findall(r"^skipped: ([^:\n]+): (.*)$", output, re.MULTILINE)


def descendants(pids):
    """These processes and all that they have started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may hold anything.
            parents[int(stat.parent.name)] = int(stat.read_text(errors="replace").rpartition(") ")[2].split()[1])
        except OSError:
            continue
    found, more = set(), set(pids)
    while more:
        found |= more
        more = {pid for pid, parent in parents.items() if parent in found} - found
    return found


def measured():
    """Nothing measures any more: lets the tests that left the CPUs to all others have their share
    of them, as far as root may. Where a stranger keeps the CPUs busy, they would never end."""
    with beginning:
        measuring.clear()
        # What one of them starts meanwhile is as idle as it was.
        for _ in range(3):
            for pid in descendants(left_idle):
                for thread in Path(f"/proc/{pid}/task").glob("[0-9]*"):
                    with contextlib.suppress(OSError):
                        os.sched_setscheduler(int(thread.name), os.SCHED_OTHER, os.sched_param(0))


def build():
    """Builds, lints and documents all of the code: test programs, and examples and the command,
    which tests start."""
    command = ["cargo", "test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]
    linted = {**os.environ, "RUSTC_WORKSPACE_WRAPPER": str(ROOT / "checks" / "compile")}
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, env=linted)
    if built.returncode != 0:
        sys.exit("checks: the tests do not compile, or not without a warning")
    programs = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
            continue
        directory = str(Path(message["manifest_path"]).parent)
        package = re.search(r"([\w-]+)@[\d.]+$|/([\w-]+)#[\d.]+$", message["package_id"])
        package = package.group(1) or package.group(2)
        # The path of a crate ends in its folder, which is its name but for the first part.
        package = package if package.startswith("pagewise") else f"pagewise-{package}"
        programs.append(Program(f"{package}/{message['target']['name']}", message["executable"], directory))
    return sorted(programs, key=lambda program: program.name)


def whole(program, report, idle=False):
    """Runs the tests of a program that need no machine in one process; the tests as it reports
    them."""
    names = program.without_machine
    command = [program.path, "--show-output", *(["--exact", *names] if program.of_machine else [])]
    test = Test(program.name, command, program.directory).run(idle=idle)
    output = test.attempts[0].output
    outcomes = dict(re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED)$", output, re.MULTILINE))
    printed = dict(re.findall(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$|^successes:$|\Z)", output, re.M | re.S))
    tests = []
    for name in names:
        passed = outcomes.get(name) == "ok"
        text = printed.get(name, "" if passed else output)
        tests.append(Test(f"{program.name} {name}", [], "", [Attempt(passed, text, 0.0)]))
    if not test.attempts[0].passed and all(test.state != "failed" for test in tests):
        tests.append(test)
    report.line(program.name, tests, test.attempts[0].seconds)
    return tests


class Report:
    """What is printed while tests run."""

    def line(self, name, tests, seconds):
        """A line in the words of the test harness: what is counted by others as well."""
        failed = [test for test in tests if test.state == "failed"]
        word = "FAILED" if failed else "ok"
        print(f"test result: {word}. {len(tests) - len(failed)} passed; {len(failed)} failed; {name} ({seconds:.0f} s)", flush=True)
        for test in failed:
            print(f"test {test.name} ... FAILED", flush=True)

    def again(self, test):
        print(f"again, alone: {test.name}: {'passed' if test.attempts[-1].passed else 'FAILED'}", flush=True)


def in_turn(tests, idle=False):
    """Runs tests one after another."""
    for test in tests:
        if not test.run(idle=idle).attempts[-1].passed:
            print(f"failed at first: {test.name}", flush=True)


def together(chains, width, calls=()):
    """Runs chains of tests beside each other, so many at a time, the tests of a chain one after
    another; and these calls, whose results it gives."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=width) as pool:
        called = [pool.submit(call) for call in calls]
        for done in concurrent.futures.as_completed([pool.submit(in_turn, chain) for chain in chains]):
            done.result()
    return [call.result() for call in called]


def of_machine(programs, words, report, beside_them=(), computing=(), apart=False):
    """Runs the tests of a machine: beside each other and beside some calls, then those that want
    the machine for themselves. These leave the CPUs idle for most of the time, which the calls
    in `computing` are given, and COMPUTING tests if others measure `apart`. The tests of all of
    them."""
    # Most of them wait for a command.
    width = 2 * (os.cpu_count() or 1)
    groups = {program.name: [] for program in programs}
    for program in programs:
        for name in program.tests if words else program.of_machine:
            label = f"{program.name} {name}"
            if not words or any(word in label for word in words):
                command = [program.path, "--exact", name, "--show-output", "--test-threads=1"]
                groups[program.name].append(Test(label, command, program.directory))
    beside = [test for name, tests in groups.items() if name not in ALONE for test in tests]
    later = [test for test in beside if apart and re.search(COMPUTING, test.name)]
    beside = [test for test in beside if test not in later]
    chains = [[test for test in beside if re.search(pattern, test.name)] for pattern in ONE_BY_ONE]
    waiting = {id(test) for chain in chains for test in chain}
    chains += [[test] for test in beside if id(test) not in waiting]
    started = time.monotonic()
    called = together(chains, width, beside_them)
    print(f"beside each other: {time.monotonic() - started:.0f} s", flush=True)
    measuring.set()
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as idle:
        beside_those = [functools.partial(in_turn, later, True), *computing]
        # Beside others that want the CPUs, what leaves them to all would get none.
        after = any([later, computing]) and is_busy()
        begun = [] if after else [idle.submit(call) for call in beside_those]
        for name in ALONE:
            in_turn(groups.get(name, []))
        measured()
        _, *computed = [call.result() for call in begun or [idle.submit(call) for call in beside_those]]
    for name, tests in groups.items():
        if tests:
            report.line(name, tests, sum(test.attempts[0].seconds for test in tests))
    tests = [test for tests in groups.values() for test in tests]
    return tests, [test for tests in called + computed for test in tests]


def replayed():
    """The names of the programs that bench/replay.py records and replays."""
    sys.path.append(str(ROOT / "bench"))
    import programs  # pylint: disable=import-outside-toplevel

    return list(programs.PROGRAMS)


def soak(programs, words, report):
    """Runs what takes long: rates alone, then what only has to be right."""
    rates, _ = of_machine([program for program in programs if program.name in SOAK], words, report)
    kills = ["python3", "bench/kills.py", f"--kills={SOAK_KILLS}", "--pagewise=target/debug/pagewise", "--dir=target"]
    rest = [Test(f"bench/kills seed {seed}", [*kills, f"--seed={seed}"], str(ROOT)) for seed in (1, 2)]
    # A plain build takes ten times as long.
    fuzz = ["env", f"PAGEWISE_FUZZ_CASES={SOAK_CASES}", "cargo", "test", "--profile", "fuzz", "-p", "pagewise-fuzz"]
    rest.append(Test("fuzz", fuzz, str(ROOT)))
    rest.append(Test("mutations of proof", ["python3", "bench/mutations.py"], str(ROOT)))
    rest.append(Test("simulations", ["cargo", "test", "--release", "-p", "pagewise-analysis", "-p", "pagewise-curves"], str(ROOT)))
    rest = [test for test in rest if not words or any(word in test.name for word in words)]

    def run(test):
        test.patience_s = SOAK_PATIENCE_S
        report.line(test.name, [test.run()], test.attempts[0].seconds)

    # Each script measures for a moment, so it runs before others keep the CPUs busy.
    scripts = [Test(script, [script], str(ROOT), skipping=NOTHING_DONE) for script in SCRIPTS]
    replays = ["python3", "bench/replay.py", "--pagewise=target/debug/pagewise", "--dir=target", "--venv=target/check/programs", "--only"]
    scripts += [Test(f"replays of {name}", [*replays, name], str(ROOT), skipping=NOTHING_DONE) for name in replayed()]
    scripts = [test for test in scripts if not words or any(word in test.name for word in words)]
    for test in scripts:
        run(test)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, test) for test in rest]):
            done.result()
    again(rates + scripts, report)
    return rates + scripts + rest


def used():
    """CPU time of all processes in seconds, and sectors that all devices moved."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    idle = ticks[3] + ticks[4]
    sectors = sum(int(words[5]) + int(words[9]) for words in map(str.split, Path("/proc/diskstats").read_text().splitlines()))
    return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK"), sectors


def is_busy():
    """Whether others use a fifth of a CPU, or move 4 MiB a second, while nothing of ours runs."""
    cpu, sectors = used()
    time.sleep(1)
    cpu_after, sectors_after = used()
    return cpu_after - cpu > 0.2 or sectors_after - sectors > 4 << 11


def again(tests, report):
    """Runs again what failed, alone."""
    for test in tests:
        while not test.attempts[-1].passed and len(test.attempts) < TRIES:
            test.run(is_busy())
            report.again(test)


def shown(text):
    """The end of what a test printed, without backtraces of the standard library."""
    lines = [line for line in text.rstrip().splitlines() if not re.match(r"\s+(at /rustc/|\d+: (core|std|test|__rustc)::)", line)]
    return "\n".join(f"    {line}" for line in lines[-SHOWN_LINES:])


def needs(path):
    """The needs that may be missing here, by the list of them."""
    missing = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, when, reason = (part.strip() for part in line.split("|", 2))
            missing[name] = (when, reason)
    return missing


def may_be_missing(when):
    """Whether a need of this kind may be missing for who runs the check."""
    return when == "always" or (when == "as a user" and os.geteuid() != 0)


def judge(tests, allowed, may_miss):
    """Prints what is to be known beside the counts; the exit status."""
    lacking = {}
    for test in tests:
        for need, detail in skips(test.attempts[-1].output):
            lacking.setdefault(need, []).append((test.name, detail))
    red = 0
    for need, where in sorted(lacking.items()):
        when, reason = allowed.get(need, ("never", "it is not in checks/needs"))
        print(f"skipped, {need}: {len(where)}; {reason}")
        for name, detail in where:
            print(f"    {name}: {detail}")
        if not may_be_missing(when) and need not in may_miss:
            print(f"checks: {need} may not be missing here", file=sys.stderr)
            red = 1
    unsteady = [test for test in tests if test.state == "unsteady"]
    for test in unsteady:
        failures = [attempt for attempt in test.attempts if not attempt.passed]
        word = "came to no result" if not test.attempts[-1].passed else "failed"
        print(f"\nunsteady: {test.name}, which {word} {len(failures)} of {len(test.attempts)} times:")
        for attempt in failures:
            print(shown(attempt.output))
    if len(unsteady) > UNSTEADY_MAX:
        print(f"checks: {len(unsteady)} tests are unsteady, {UNSTEADY_MAX} may be", file=sys.stderr)
        red = 1
    for test in (test for test in tests if test.state == "failed"):
        print(f"\nfailed: {test.name}" + (f", {TRIES} times of {TRIES}" if len(test.attempts) == TRIES else ""))
        print(shown(test.attempts[-1].output))
        red = 1
    return red


def keep(tests, seconds):
    """Writes the figures, and what each test printed."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    counts = {state: sum(test.state == state for test in tests) for state in ("passed", "failed", "unsteady", "skipped")}
    slowest = sorted(tests, key=lambda test: -max(attempt.seconds for attempt in test.attempts))[:40]
    figures = {
        **counts,
        "seconds": round(seconds),
        "slowest": {test.name: round(test.attempts[0].seconds, 1) for test in slowest},
        "unsteady_tests": [test.name for test in tests if test.state == "unsteady"],
        "failed_tests": [test.name for test in tests if test.state == "failed"],
    }
    (RESULTS / "tests.json").write_text(json.dumps(figures, indent=1) + "\n")
    with open(RESULTS / "output", "w", encoding="utf-8") as file:
        for test in tests:
            for number, attempt in enumerate(test.attempts, 1):
                file.write(f"==== {test.name}: attempt {number}, {'passed' if attempt.passed else 'FAILED'}, {attempt.seconds:.1f} s\n")
                file.write(attempt.output)
    return counts


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--build", action="store_true", help="no test: only builds, lints and documents")
    arguments.add_argument("--gate", action="store_true", help="only what needs no machine")
    arguments.add_argument("--soak", action="store_true", help="what takes long, instead")
    arguments.add_argument("--may-miss", metavar="LIST", default="", help="needs that may be missing here, with commas between them")
    arguments.add_argument("words", nargs="*", metavar="WORD", help="only tests whose names contain one of them")
    arguments = arguments.parse_args()
    started, report = time.monotonic(), Report()
    programs = build()
    print(f"built in {time.monotonic() - started:.0f} s", flush=True)
    if arguments.build:
        return 0
    if arguments.soak:
        tests = soak(programs, arguments.words, report)
    elif arguments.gate:
        # Some of them end with a test that keeps one CPU.
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            ran = pool.map(lambda program: whole(program, report), [program for program in programs if program.without_machine])
            tests = [test for tests in ran for test in tests]
    elif arguments.words:
        tests, _ = of_machine(programs, arguments.words, report)
        again(tests, report)
    else:
        usual = [program for program in programs if program.of_machine and program.name not in SOAK]
        # Those with tests of both kinds keep small files, so they do not run while others measure.
        beside = [functools.partial(whole, program, report) for program in usual if program.without_machine]
        computing = [functools.partial(whole, program, report, True) for program in programs if not program.of_machine]
        # What is written while tests measure would be seen by those of the same device.
        apart = os.path.ismount(ROOT / "target" / "tmp")
        machine, computed = of_machine(usual, [], report, beside, computing, apart)
        again(machine, report)
        tests = computed + machine
    sweep()
    counts = keep(tests, time.monotonic() - started)
    if not tests:
        sys.exit("checks: no test has such a name")
    status = judge(tests, needs(ROOT / "checks" / "needs"), arguments.may_miss.split(","))
    print(", ".join(f"{count} {state}" for state, count in counts.items()), flush=True)
    return status


def stopped(*_):
    """Ends the tests that run. They lead process groups of their own, so neither a terminal nor the
    end of this process does."""
    for group in list(running):
        os.killpg(group, signal.SIGKILL)
    # Until the kernel has ended them, their runs are live.
    time.sleep(0.3)
    sweep()
    os._exit(130)


def sweep():
    """Has pagewise remove what runs of tests that were killed have left, cgroups among it: the next
    run of such a place, which would do that, never comes. A live run is left alone."""
    folders = {ROOT / "target", ROOT / "target" / "tmp", Path(tempfile.gettempdir())}
    for state in [state for folder in folders for state in folder.glob("place-*/state")]:
        environment = {**os.environ, "PAGEWISE_STATE_DIR": str(state)}
        subprocess.run([ROOT / "target" / "debug" / "pagewise", "clean"], env=environment, stdout=subprocess.DEVNULL)
        if ROOT in state.parents:
            shutil.rmtree(state.parent, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, stopped)
    signal.signal(signal.SIGTERM, stopped)
    sys.exit(main())
