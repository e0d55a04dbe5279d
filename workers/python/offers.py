"""The offers of the worker: `hello` is made of it, jobs are checked by it, and pagewise itself
reads it."""

import re

from failures import Failure

# A line for each word of a method: how its bytes move, as the kernel sees it, and the options that
# it takes in each workload. `-`: it is not for it; `none`: it takes none; `*`: what is meant where
# none is written. Of `buffer=SIZE` any size is taken.
OFFERS = """
word             access  reads   scan  append         fill          update  by
mmap             mmap    random  none  none           none          random  slices of an mmap.mmap
pread            pread   none    none  -              -             -       os.preadv into a buffer
readinto         read    none    none  -              -             -       seek and readinto of a raw file
numpy-memmap     mmap    none    none  -              -             -       slices of a numpy.memmap
pwrite           pwrite  -       -     buffer=64KiB   buffer=64KiB  none    os.pwrite, and os.preadv into a buffer
write            write   -       -     buffer=64KiB   buffer=64KiB  -       os.write
buffered-writer  write   -       -     buffer=64KiB*  -             -       io.BufferedWriter of a file
"""

WORKLOADS = ("random-read", "sequential-read", "scan", "append", "fill", "update")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def offered(workload):
    """The options of each word for a workload; each takes one at most."""
    if workload not in WORKLOADS:
        return {}
    columns, *lines = [line.split() for line in OFFERS.strip().split("\n")]
    column = columns.index("reads" if workload.endswith("-read") else workload)
    taken = [(line[0], line[column]) for line in lines if line[column] != "-"]
    return {word: [] if options == "none" else options.split(",") for word, options in taken}


def methods(workload):
    """The methods for a workload: each word, and each with each of its options."""
    by_word = [[word] + [word + ":" + option.rstrip("*") for option in options] for word, options in offered(workload).items()]
    return sum(by_word, [])


def parse(job):
    """The word of the job's method, and the bytes of its buffer, 0 without one."""
    word, _, option = job.method.partition(":")
    taken = offered(job.workload).get(word)
    plain = [known for known in taken or [] if "=" not in known]
    sizes = [known for known in taken or [] if known.startswith("buffer=")]
    if option == "" and sizes and sizes[0].endswith("*"):
        option = sizes[0].rstrip("*")
    size = parse_size(option[len("buffer=") :]) if sizes and option.startswith("buffer=") else 0
    if taken is None or size == 0 and option not in ["", *plain]:
        has = "the python worker has no method '%s' for %s; it has %s"
        detail = has % (job.method, job.workload, ", ".join(methods(job.workload)))
        raise Failure("open", job.path, detail, unavailable=1)
    return word, size


def parse_size(text):
    """Bytes of `100B`, `64KiB`, `1MiB`, `2GiB`; 0 where it is no size."""
    parts = re.fullmatch("([0-9]{1,12})(B|[KMG]iB)", text)
    return int(parts.group(1)) * UNITS[parts.group(2)] if parts else 0
