"""Bare loops: what the Python worker does, with nothing around it but a clock before and a clock
behind.

`bare.py METHOD FILE TABLE`: each line of stdin is a number of operations of 16 reads of 16 KiB,
which go on in the table where those before ended. `bare.py append FILE SOURCE RECORD_BYTES PERIOD
BUFFER_BYTES write` writes: each line is a number of records, from the start of the file on. The
answer is `NANOSECONDS CHECKSUM`.
"""

import mmap
import os
import struct
import sys
from time import perf_counter_ns

READ_BYTES = 16 << 10
READS = 16
# One word of each page.
WORDS = struct.Struct("<" + "Q4088x" * 3 + "Q").unpack_from


def by_mmap(path):
    """Slices of a mapping."""
    with open(path, "rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def read(offsets):
        total = 0
        for offset in offsets:
            total += sum(WORDS(mapping[offset:offset + READ_BYTES]))
        return total

    return read


def by_pread(path):
    """os.preadv into a buffer."""
    descriptor = os.open(path, os.O_RDONLY)
    buffer = bytearray(READ_BYTES)
    buffers = [buffer]
    preadv = os.preadv

    def read(offsets):
        total = 0
        for offset in offsets:
            if preadv(descriptor, buffers, offset) != READ_BYTES:
                raise EOFError
            total += sum(WORDS(buffer))
        return total

    return read


def by_readinto(path):
    """seek and readinto of a raw file."""
    file = open(path, "rb", buffering=0)
    buffer = bytearray(READ_BYTES)
    seek, readinto = file.seek, file.readinto

    def read(offsets):
        total = 0
        for offset in offsets:
            seek(offset)
            if readinto(buffer) != READ_BYTES:
                raise EOFError
            total += sum(WORDS(buffer))
        return total

    return read


def main(method, path, table_path):
    """Serves requests until stdin ends."""
    read = {"mmap": by_mmap, "pread": by_pread, "readinto": by_readinto}[method](path)
    with open(table_path, "rb") as file:
        table = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)).cast("Q")
    at, end = 0, len(table)
    for line in sys.stdin:
        left, checksum = int(line) * READS, 0
        begun = perf_counter_ns()
        while left > 0:
            stop = min(at + left, end)
            checksum += read(table[at:stop])
            left -= stop - at
            at = stop % end
        elapsed = perf_counter_ns() - begun
        print(elapsed, checksum % (1 << 64), flush=True)


def append(path, source_path, record, period, _buffer, _method):
    """Writes records by os.write until stdin ends."""
    with open(source_path, "rb") as file:
        source = memoryview(file.read())
    record, period, write = int(record), int(period), os.write
    for line in sys.stdin:
        descriptor, place = os.open(path, os.O_RDWR), 0
        begun = perf_counter_ns()
        for _ in range(int(line)):
            if write(descriptor, source[place:place + record]) != record:
                raise EOFError
            place += record
            if place >= period:
                place -= period
        elapsed = perf_counter_ns() - begun
        os.close(descriptor)
        print(elapsed, 0, flush=True)


if sys.argv[1] == "append":
    append(*sys.argv[2:])
else:
    main(*sys.argv[1:])
