"""Loops: one is compiled for each way to move bytes and to consume them, as timeit does. No option
is asked inside."""

import os
import struct

# Compiled loops use `failed_call`, `short_call` and WORD_MASK.
from failures import Failure, failed_call, short_call

WORD_MASK = (1 << 64) - 1

# Expressions that make `data` of `size` bytes from `offset` on.
MOVES = {
    "mmap": "data = mapping[offset:offset + size]",
    "pread": """\
if (received := preadv(descriptor, views, offset)) != size:
    raise short_call("preadv", path, offset, size, received)""",
    "readinto": """\
seek(offset)
if (received := readinto(view)) != size:
    raise short_call("read", path, offset, size, received)""",
    # From where the read before ended.
    "readinto on": """\
if (received := readinto(view)) != size:
    raise short_call("read", path, offset, size, received)""",
    "numpy-memmap": "array[:] = mapped_array[offset:offset + size]",
}

# Timed region: `for each piece of a scan: move; total += consume`.
PIECES = """
def read(offsets):
    total = 0
    try:
        for offset in offsets:
            {move}
            total += {consume}
    except OSError as error:
        raise failed_call(call, path, error, offset) from error
    return total & WORD_MASK
"""

# Timed region: `for each (weight, offset): move; total += weight * consume`. The weight of the
# first read is given.
READS = """
def read(offsets, weight):
    total = 0
    try:
        for weight, offset in zip(range(weight, weight + 2 * len(offsets), 2), offsets):
            {move}
            total += weight * ({consume})
    except OSError as error:
        raise failed_call(call, path, error, offset) from error
    return total & WORD_MASK
"""

# Timed region: `for each operation: link = 0; for each entry: offset = entry ^ link; offset <=
# last; move; link = first word; total += weight * consume; weight += 2`.
DEPENDENT_READS = """
def read(entries, weight):
    total = 0
    try:
        for start in range(0, len(entries), reads_per_op):
            link = 0
            for entry in entries[start:start + reads_per_op]:
                offset = entry ^ link
                if offset > last_offset:
                    raise astray(offset)
                {move}
                link, = first_word(data)
                total += weight * ({consume})
                weight += 2
    except OSError as error:
        raise failed_call(call, path, error, offset) from error
    return total & WORD_MASK
"""

# One read outside the clock, as bytes.
FETCH = """
def fetch(offset):
    try:
        {move}
    except OSError as error:
        raise failed_call(call, path, error, offset) from error
    return bytes(data)
"""

# Names become variables of an enclosing function, which loops find as fast as their own.
FACTORY = """
def factory({names}):
{body}
    return {function}
"""

CALLS = {"mmap": "mmap", "pread": "preadv", "readinto": "read", "numpy-memmap": "mmap"}


def indented(text, spaces):
    return text.replace("\n", "\n" + " " * spaces)


def compiled(function, template, move, consume, names):
    """The function that a template makes, with `names` as its constants."""
    return maker(function, template, move, consume, names)(**names)


def maker(function, template, move, consume, names):
    """Makes the function of a template for values of `names`."""
    lines = []
    for line in template.strip().split("\n"):
        at = len(line) - len(line.lstrip())
        lines.append(line.format(move=indented(move, at), consume=consume))
    body = "    " + indented("\n".join(lines), 4)
    made = {}
    exec(FACTORY.format(names=", ".join(names), body=body, function=function), globals(), made)
    return made["factory"]


class Loops:
    """The loops of a method for reads of one size, with a thread's own buffer."""

    def __init__(self, job, source, size, consume, touch_last, continued=False):
        self.size = size
        self.names = {
            "size": size,
            "path": source.path,
            "call": CALLS[source.kind],
            "mapping": source.mapping,
            "mapped_array": source.array,
            "first_word": struct.Struct("<Q").unpack_from,
            "touch_at": 0,
        }
        if source.kind != "mmap":
            self.make_buffer(source)
        self.move = MOVES[source.kind + (" on" if continued else "")]
        self.consume = getattr(self, consume)(source.kind, job.page_bytes, touch_last)

    def make_buffer(self, source):
        """A buffer of a thread. It ends with zeros that no read overwrites, so that its last word
        is whole."""
        buffer = bytearray(self.size // 8 * 8 + 16)
        view = memoryview(buffer)
        data = view[: self.size]
        self.names.update(
            buffer=buffer,
            view=data,
            data=data,
            views=[data],
            words=view[: (self.size + 7) // 8 * 8].cast("Q"),
            preadv=os.preadv,
            descriptor=source.file.fileno(),
            seek=source.file.seek,
            readinto=source.file.readinto,
        )
        if source.kind == "numpy-memmap":
            import numpy

            self.names["array"] = numpy.frombuffer(data, dtype=numpy.uint8)
            self.names["array_words"] = numpy.frombuffer(self.names["words"], dtype=numpy.uint64)

    def touch(self, kind, page_bytes, touch_last):
        """The words at `touch_at` of each page, and the last one. A page that is cut within a word
        has it at 0."""
        count = (self.size + page_bytes - 1) // page_bytes
        partial = self.size - (count - 1) * page_bytes < 8
        # Only a buffer has zeros behind it; of a bytes object the last page's word is padded by
        # itself.
        apart = kind == "mmap" and partial
        words = count - apart
        self.names["pages"] = struct.Struct("<" + "Q%dx" % (page_bytes - 8) * (words - 1) + "Q" * min(words, 1)).unpack_from
        terms = ["sum(pages(%s, touch_at))" % self.whole(kind)]
        if apart:
            terms.append("int.from_bytes(data[%d:], 'little')" % ((count - 1) * page_bytes))
        if touch_last:
            word = "first_word(%s, %d)[0]" % (self.whole(kind), max(self.size - 8, 0))
            terms.append("int.from_bytes(data, 'little')" if self.size < 8 else word)
        return " + ".join(terms)

    def sum(self, kind, _page_bytes, _touch_last):
        """All words."""
        if kind == "numpy-memmap":
            return "int(array_words.sum())"
        if kind != "mmap":
            return "sum(words)"
        whole = self.size // 8 * 8
        if whole == self.size:
            return "sum(memoryview(data).cast('Q'))"
        return "sum(memoryview(data)[:%d].cast('Q')) + int.from_bytes(data[%d:], 'little')" % (whole, whole)

    def lines(self, kind, _page_bytes, _touch_last):
        """Newline bytes. The zeros behind a buffer are none."""
        return "%s.count(10)" % self.whole(kind)

    @staticmethod
    def whole(kind):
        return "data" if kind == "mmap" else "buffer"

    def pieces(self):
        """`read(offsets)`: pieces of a scan at all of them, and the checksum."""
        return compiled("read", PIECES, self.move, self.consume, self.names)

    def reads(self):
        """For a `touch_at`: `read(offsets, weight)`, reads at all of them, and the checksum in
        which the first counts `weight` times and each further one 2 times more."""
        return self.touching("read", READS, self.names)

    def touching(self, function, template, names):
        """Compiles a template once; returns what makes its function for a `touch_at`."""
        make = maker(function, template, self.move, self.consume, names)
        return lambda touch_at: make(**dict(names, touch_at=touch_at))

    def dependent_reads(self, job):
        """The same for entries of the table whose offsets follow from what was read."""

        last_offset = job.span_bytes - job.read_bytes
        names = dict(
            self.names, reads_per_op=job.reads_per_op, last_offset=last_offset, astray=lambda offset: astray(job, offset)
        )
        return self.touching("read", DEPENDENT_READS, names)

    def fetch(self):
        """`fetch(offset)`: the bytes of one read."""
        return compiled("fetch", FETCH, self.move, "", self.names)


def astray(job, offset):
    """The failure of a read that was led to where none fits into the span."""
    detail = "the data of %s led to offset %d, past the %d bytes that are read: they are not those that the offset table was made of"
    return Failure("read by the table", job.path, detail % (job.path, offset, job.span_bytes), 0, offset)
