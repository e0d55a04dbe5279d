"""What the worker offers: `hello` is made of it, jobs are checked by it, and pagewise itself reads it."""

# A line for each word of a method: how its bytes move, as the kernel sees it, and the options that it takes in each workload.
# `-`: it is not for it; `none`: it takes none.
OFFERS = """
word          access  reads   scan  append  fill  by
mmap          mmap    random  none  -       -     slices of an mmap.mmap
pread         pread   none    none  -       -     os.preadv into a buffer
readinto      read    none    none  -       -     seek and readinto of a raw file
numpy-memmap  mmap    none    none  -       -     slices of a numpy.memmap
"""

WORKLOADS = ("random-read", "sequential-read", "scan", "append", "fill")


def methods(workload):
    """The methods for a workload: each word, and each with each of its options."""
    columns, *lines = [line.split() for line in OFFERS.strip().split("\n")]
    column = columns.index("reads" if workload.endswith("-read") else workload)
    taken = [(line[0], line[column]) for line in lines if line[column] != "-"]
    by_word = [[word] + [word + ":" + option for option in options.split(",") if option != "none"] for word, options in taken]
    return sum(by_word, [])
