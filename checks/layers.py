"""Which tests need a machine, by the words that they and the helpers of their file use.

A test without a machine computes: it reads no clock and waits for none, starts no process and no
thread, keeps no dataset, and asks this machine for nothing that another one lacks. Some programs
hold only such tests. Programs of both kinds are divided test by test; one whose text is not found
is one of a machine.
"""

import functools
import re
from pathlib import Path

# Programs that hold only tests without a machine: all of a package, or one target of it.
WITHOUT_MACHINE = {
    "pagewise-model", "pagewise-analysis", "pagewise-report", "pagewise-fuzz", "pagewise-claims", "pagewise-compare", "pagewise-curves",
    "pagewise-page",
    "pagewise/arrows", "pagewise/gate",
}
# Programs of both kinds.
OF_BOTH_KINDS = {
    "pagewise-host/pagewise_host", "pagewise-engine/pagewise_engine", "pagewise-protocol/pagewise_protocol",
    "pagewise-lab/pagewise_lab", "pagewise-toolchain/pagewise_toolchain", "pagewise-watch/pagewise_watch",
    "pagewise/pagewise",
}

# What a test without a machine does not name.
MACHINE = {
    "a clock": r"\bInstant\b|\bSystemTime\b|\belapsed\(",
    "waiting": r"\bsleep\(|\byield_now\(|\bwait_for\(",
    "threads and processes": r"\bspawn\b|\bthread::(scope|Builder)|\bCommand::|\bprocess::|\bSignal\b|\bFakes\b",
    "datasets and what is cached of them": r"\bDataset::|\bevict\(|\bresidency\(|\bdirty_bytes\(|\ballocated_bytes\(|\bsync_all\(|\bbuild_folder\(",
    "mappings": r"\bFileMapping\b|\bAnonymousMemory\b",
    "what this machine has": r"\bdetect\(|/dev/shm|\bskipped: |\bwrite_pace\(",
}


def needs(text):
    """What of a machine a test of this text needs, each with the word that says so."""
    found = {need: re.search(words, text) for need, words in MACHINE.items()}
    return {need: match.group() for need, match in found.items() if match}


# A function that is a test, with what stands before its name.
TEST = re.compile(r"^( *)#\[test\]\n(?:\1#\[.*\]\n)*\1fn (\w+)\(.*?^\1\}\n", re.MULTILINE | re.DOTALL)


def tests_of(text):
    """The part of a file that is only built for tests."""
    begin = re.search(r"^#\[cfg\(test\)\]\n(?:#\[.*\]\n)*(?:pub(?:\(\w+\))? )?mod \w+ \{", text, re.MULTILINE)
    return text[begin.start() :] if begin else ""


def text_of(name, root):
    """The text of a test and of its file's helpers, if it can be found below the folder of its
    crate's sources."""
    module, _, name = name.rpartition("::")
    helpers, tests = parts_of(module, root)
    return helpers + tests[name] if name in tests else None


@functools.cache
def parts_of(module, root):
    """The text of the helpers of a module's tests, and that of each test by its name."""
    file = file_of(module.split("::"), root)
    return TEST.sub("", file), {test.group(2): test.group() for test in TEST.finditer(file)}


def file_of(modules, root):
    """The text of the file that holds the tests of a module, if there is one; of code with tests
    inside only these."""
    for count in range(len(modules), 0, -1):
        folder = root.joinpath(*modules[: count - 1])
        for path in (folder / f"{modules[count - 1]}.rs", folder / modules[count - 1] / "mod.rs"):
            if path.is_file():
                text = path.read_text(encoding="utf-8")
                return tests_of(text) if count < len(modules) else text
    return ""


def needs_machine(program, name):
    """True if a test of this program needs a machine."""
    if program.name in WITHOUT_MACHINE or program.name.split("/")[0] in WITHOUT_MACHINE:
        return False
    if program.name not in OF_BOTH_KINDS:
        return True
    text = text_of(name, Path(program.directory) / "src")
    return text is None or bool(needs(text))
