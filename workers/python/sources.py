"""The file, opened in the way of a method, and the offset table."""

import io
import mmap
import sys

from failures import Failure, failed_call, refused_call


class Source:
    """An open file: what the loops of a method read from. `close` releases it for good: no mapping
    and no descriptor is left for the garbage collector."""

    def __init__(self, job):
        self.path = job.path
        self.span_bytes = job.span_bytes
        self.page_bytes = job.page_bytes
        self.file = self.mapping = self.array = None
        self.kind = job.method.split(":")[0]
        numpy = import_numpy(job) if self.kind == "numpy-memmap" else None
        try:
            self.file = io.FileIO(job.path, "r")
        except OSError as error:
            raise failed_call("open", job.path, error) from error
        if self.kind == "mmap":
            self.map(job.method == "mmap:random")
        elif numpy is not None:
            self.map_by_numpy(numpy)

    def map(self, random):
        """Maps the span, and advises it."""
        self.mapping = guarded_map(
            self.path, lambda: mmap.mmap(self.file.fileno(), self.span_bytes, mmap.MAP_SHARED, mmap.PROT_READ)
        )
        if random:
            advise_random(self.mapping, self.path)

    def map_by_numpy(self, numpy):
        """Maps the span by numpy, whose mapping keeps a descriptor of its own."""
        self.array = guarded_map(
            self.path, lambda: numpy.memmap(self.path, dtype=numpy.uint8, mode="r", shape=(self.span_bytes,))
        )
        self.mapping = self.array._mmap

    def warm(self):
        """Reads one byte of each page of the mapping, if there is one."""
        if self.mapping is not None:
            with memoryview(self.mapping) as span, span[: self.span_bytes : self.page_bytes] as bytes_of_pages:
                sum(bytes_of_pages)

    def close(self):
        """Unmaps and closes. An array over the mapping must be gone before the mapping can be
        closed."""
        self.array = None
        if self.mapping is not None:
            self.mapping.close()
        self.mapping = None
        self.file.close()


def advise_random(mapping, path):
    try:
        mapping.madvise(mmap.MADV_RANDOM)
    except OSError as error:
        raise refused_call("madvise(MADV_RANDOM)", path, error) from error


def guarded_map(path, make):
    """A mapping, or why there is none. mmap.mmap says ValueError where the file is shorter than
    what is to be mapped."""
    try:
        return make()
    except OSError as error:
        raise failed_call("mmap", path, error) from error
    except ValueError as error:
        raise Failure("mmap", path, "mmap of %s: %s" % (path, error)) from error


def interpreter():
    """Such as `cpython 3.11.7`."""
    return "%s %d.%d.%d" % ((sys.implementation.name,) + tuple(sys.version_info[:3]))


def import_numpy(job):
    """numpy, or why the method is unavailable. What the import takes is a part of set-up, once in a
    process."""
    try:
        import numpy
    except ImportError as error:
        detail = "numpy-memmap needs numpy, which %s (%s) cannot import: %s" % (sys.executable, interpreter(), error)
        raise Failure("import numpy", job.path, detail, unavailable=1) from error
    return numpy


class Table:
    """The offset table, mapped: it is pagewise's memory, and costs the worker none. It holds zeros
    until `go`, and another table with each."""

    def __init__(self, job):
        try:
            with io.FileIO(job.table_path, "r") as file:
                length = job.table_reads * 8
                self.mapping = guarded_map(
                    job.table_path, lambda: mmap.mmap(file.fileno(), length, mmap.MAP_SHARED, mmap.PROT_READ)
                )
        except OSError as error:
            raise failed_call("open", job.table_path, error) from error
        self.bytes = memoryview(self.mapping)
        self.offsets = self.bytes.cast("Q")

    def part(self, start, length):
        return self.offsets[start : start + length]

    def close(self):
        self.offsets.release()
        self.bytes.release()
        self.mapping.close()
