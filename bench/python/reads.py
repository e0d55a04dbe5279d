"""Ways to read a file at random, as a user of timeit would compare them.

`reads.py METHOD FILE TABLE SECONDS` prints operations per second. An operation is 16 reads of 16 KiB, of each of which one
word of each page is consumed. Offsets come from a table, front to back.
"""

import mmap
import os
import struct
import sys
import timeit

READ_BYTES = 16 << 10
READS = 16
REPEATS = 5
# One word of each page.
WORDS = struct.Struct("<" + "Q4088x" * 3 + "Q")


def by_mmap(path):
    """Slices of a mapping."""
    with open(path, "rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def operation(offsets):
        total = 0
        for offset in offsets:
            data = mapping[offset:offset + READ_BYTES]
            total += sum(WORDS.unpack_from(data))
        return total

    return operation


def by_pread(path):
    """os.preadv into a buffer."""
    descriptor = os.open(path, os.O_RDONLY)
    buffer = bytearray(READ_BYTES)

    def operation(offsets):
        total = 0
        for offset in offsets:
            if os.preadv(descriptor, [buffer], offset) != READ_BYTES:
                raise EOFError
            total += sum(WORDS.unpack_from(buffer))
        return total

    return operation


def by_numpy(path):
    """Slices of a memmap, copied into an array."""
    import numpy

    mapped = numpy.memmap(path, dtype=numpy.uint8, mode="r")
    array = numpy.empty(READ_BYTES, dtype=numpy.uint8)

    def operation(offsets):
        total = 0
        for offset in offsets:
            array[:] = mapped[offset:offset + READ_BYTES]
            total += sum(WORDS.unpack_from(array))
        return total

    return operation


def operations(path):
    """The table, cut into operations, for ever."""
    with open(path, "rb") as file:
        table = memoryview(file.read()).cast("Q")
    cut = [table[at:at + READS].tolist() for at in range(0, len(table), READS)]
    while True:
        yield from cut


def main(method, path, table, seconds):
    """As `python -m timeit` does it, but with the mean of all repeats, not the best."""
    operation = {"mmap": by_mmap, "pread": by_pread, "numpy-memmap": by_numpy}[method](path)
    offsets = operations(table)
    timer = timeit.Timer(lambda: operation(next(offsets)))
    number, taken = timer.autorange()
    number = max(1, round(number * float(seconds) / REPEATS / taken))
    times = timer.repeat(REPEATS, number)
    print(REPEATS * number / sum(times))


main(*sys.argv[1:])
