#!/usr/bin/env python3
"""Pagewise's own methods, which are honest, on filesystems and files that serve them in ways of
their own.

    cargo build --release
    python3 bench/honest.py

Twenty samples of every method: by 1, 2, 16 and 64 threads on this filesystem and in memory; on
files of which a share was never written; and on btrfs (plain, compressed, without copy-on-write),
on a device with sectors of 4 KiB, through FUSE, on overlayfs and tmpfs. No sample may be accused of
what the filesystem did, and none may be believed that was not what its name says.

A sample is *accused* if it fails a check that others on this machine cannot cause. It is *in
another state* if the page cache did not hold what the sample was to begin with; the kernel may take
idle pages at any time (DAMON). What a filesystem does not offer is *unavailable*, with the reason.
Filesystems need root, loop devices and their tools (mkfs.btrfs, bindfs); what is missing is named.
Prints a table for bench/RESULTS.md; exit status 1 if anything was accused, or a direct method was
believed where the page cache served it.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FROM_OUTSIDE = {"disturbed", "contaminated", "ended-from-outside", "killed-from-outside", "clock-stepped"}
# Text, which is compressed, so that a direct read goes through the page cache: no sample of it may
# be believed, and `not-direct` is right.
SERVED_FROM_CACHE = "btrfs, compressed, scan"
STATE = {"not-warm", "not-cold"}
READS = "mmap,mmap:random,mmap:populate,pread,pread:random,pread:direct,pread:dontcache,uring:depth=8,uring:direct+depth=8"
RANDOM = ["read", "--workload=random-read", "--cache=warm,cold", f"--methods={READS}", "--sample=10ms"]
SCAN = ["scan", "--cache=warm,cold", "--methods=mmap,mmap:populate,read:buffer=64KiB,read:direct+buffer=1MiB,uring:depth=8"]
APPEND = ["append", "--cache=cold", "--methods=mmap,mmap:prealloc,write,pwrite,pwrite:buffer=64KiB", "--record-size=1KiB", "--passes=1"]
FILL = ["fill", "--methods=mmap,mmap:populate-write,write,pwrite", "--block-size=64KiB"]


def run(words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True, **options).stdout.strip()


class Places:
    """Directories on filesystems that are made for this, and gone afterwards."""

    def __init__(self, directory):
        self.directory, self.undo, self.lacking = directory, [], []

    def new(self, name):
        path = self.directory / name
        path.mkdir()
        return path

    def mount(self, name, *words):
        path = self.new(name)
        run(["mount", *words, path])
        self.undo.append(["umount", path])
        return path

    def on_device(self, name, make, sector_bytes=512, options="defaults"):
        image = self.directory / f"{name}.img"
        with open(image, "wb") as file:
            file.truncate(1 << 30)
        device = run(["losetup", "--show", "-f", "-b", sector_bytes, image])
        self.undo.append(["losetup", "-d", device])
        run([*make, device])
        return self.mount(name, "-o", options, device)

    def all(self):
        """Names and directories, as far as this machine has them."""
        def btrfs(name, options="defaults"):
            return self.on_device(name, ["mkfs.btrfs", "-q"], options=options)

        def without_cow():
            path = btrfs("nocow") / "files"
            path.mkdir()
            run(["chattr", "+C", path])
            return path

        def overlay():
            parts = [self.new(part) for part in ("lower", "upper", "work")]
            layers = ",".join(f"{name}={path}" for name, path in zip(("lowerdir", "upperdir", "workdir"), parts))
            return self.mount("overlay", "-t", "overlay", "-o", layers, "overlay")

        def fuse():
            path, behind = self.new("fuse"), self.new("behind")
            run(["bindfs", behind, path])
            self.undo.append(["umount", path])
            return path

        makers = [
            ("btrfs", lambda: btrfs("btrfs")),
            ("btrfs, compressed", lambda: btrfs("compressed", "compress-force=zstd")),
            ("btrfs, without copy-on-write", without_cow),
            ("ext4, sectors of 4 KiB", lambda: self.on_device("sectors", ["mkfs.ext4", "-q"], 4096)),
            ("FUSE (bindfs)", fuse),
            ("overlayfs", overlay),
            ("tmpfs", lambda: self.mount("tmpfs", "-t", "tmpfs", "tmpfs")),
        ]
        for name, make in makers:
            try:
                yield name, make()
            except (OSError, subprocess.CalledProcessError) as error:
                self.lacking.append(f"{name}: {getattr(error, 'stderr', None) or error}".strip())

    def end(self):
        for words in reversed(self.undo):
            subprocess.run([str(word) for word in words], check=False)


def samples(binary, directory, rounds, question, more):
    """Of each method: valid samples, those hidden by others and in another state, accusations, and
    the reason that it is unavailable."""
    out = directory / "run.jsonl"
    words = [binary, "run", *question, *more, f"--rounds={rounds}", "--no-ceilings", "--json", "--out", out]
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=directory)
    if not out.exists():
        return (ran.stderr.strip().splitlines() or [f"status {ran.returncode}"])[-1]
    cells = {cell["id"]: cell for cell in json.loads(ran.stdout)["cells"] if cell["role"] == "measured"}
    found = collections.defaultdict(lambda: [0, 0, 0, collections.Counter(), None])
    for line in out.read_text().splitlines():
        sample = json.loads(line).get("record", {})
        if sample.get("kind") != "sample" or sample["cell"] not in cells:
            continue
        cell, outcome = cells[sample["cell"]], sample["outcome"]
        of = found[f"{cell['method']} {cell['cache']}"]
        kinds = {failure["kind"] for failure in outcome.get("failures", [])}
        blamed = kinds - FROM_OUTSIDE
        if outcome["outcome"] == "unavailable":
            of[4] = outcome["reason"]
        elif outcome["outcome"] != "taken":
            of[3].update([outcome["outcome"]])
        elif not kinds:
            of[0] += 1
        elif not blamed:
            of[1] += 1
        elif blamed <= STATE:
            of[2] += 1
        else:
            of[3].update(blamed)
    out.unlink()
    return found


def rows(binary, directory, rounds):
    """What is tried: a name, a directory, a question, and its further words."""
    for name, where in (("this filesystem", directory), ("/dev/shm", Path("/dev/shm"))):
        for threads in (1, 2, 16, 64):
            more = [f"--threads={threads}", "--file-size=64MiB", "--read-size=4KiB", "--reads-per-op=1", "--dir", where]
            if name == "/dev/shm":
                more.append("--cache=warm")
            yield f"{name}, {threads} thread{'s' if threads > 1 else ''}", directory, RANDOM, more
    for percent in (0, 3, 8, 50, 100):
        path = directory / f"unwritten-{percent}.bin"
        size = 64 << 20
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            file.write(os.urandom(size * (100 - percent) // 100))
            os.fsync(file.fileno())
        yield f"a file, {percent} % unwritten", directory, [RANDOM[0], path, *RANDOM[1:]], ["--threads=1", "--evict", "--read-size=4KiB"]
        path.unlink()
    places = Places(Path(tempfile.mkdtemp(dir=directory)))
    try:
        for name, where in places.all():
            in_memory = ["--cache=warm"] if name == "tmpfs" else []
            yield f"{name}, random reads", where, RANDOM, ["--threads=1", "--file-size=64MiB", "--dir", where, *in_memory]
            yield f"{name}, scan", where, SCAN, ["--file-size=32MiB", "--dir", where, *in_memory]
            yield f"{name}, append", where, APPEND, ["--file-size=4MiB", "--dir", where]
            yield f"{name}, fill", where, FILL, ["--file-size=8MiB", "--dir", where]
    finally:
        places.end()
        shutil.rmtree(places.directory, ignore_errors=True)
    for lacking in places.lacking:
        print(f"honest: not tried: {lacking}", file=sys.stderr)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=20, help="samples of each method")
    arguments.add_argument("--word", default="", help="only rows whose names contain it")
    arguments.add_argument("--debug", action="store_true", help="the binary that is not optimised")
    asked = arguments.parse_args()
    binary = ROOT / "target" / ("debug" if asked.debug else "release") / "pagewise"
    wrong = []
    print("| tried on | valid | hidden by others | in another state | accused | unavailable |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        for name, where, question, more in rows(binary, Path(directory), asked.rounds):
            if asked.word not in name:
                continue
            found = samples(binary, where, asked.rounds, question, more)
            if isinstance(found, str):
                print(f"| {name} | – | – | – | – | refused: {found.removeprefix('pagewise: ')} |", flush=True)
                continue
            valid, hidden, other = (sum(of[place] for of in found.values()) for place in range(3))
            is_right = lambda method, kind: name == SERVED_FROM_CACHE and "direct" in method and kind == "not-direct"
            accused = [f"{method}: {kind} {count}" for method, of in found.items() for kind, count in of[3].items() if not is_right(method, kind)]
            accused += [f"{method}: never in its state" for method, of in found.items() if of[2] and not of[0]]
            reasons = collections.defaultdict(list)
            for method, of in found.items():
                reasons[of[4]].append(method)
            seen = "; ".join(f"{', '.join(methods)}: {reason}" for reason, methods in reasons.items() if reason)
            print(f"| {name} | {valid} | {hidden} | {other} | {'; '.join(accused) or '–'} | {seen or '–'} |", flush=True)
            wrong += [f"{name}: {one}" for one in accused]
            if name == SERVED_FROM_CACHE:
                wrong += [f"{name}: {method} is believed" for method, of in found.items() if "direct" in method and of[0]]
    for one in wrong:
        print(f"honest: {one}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
