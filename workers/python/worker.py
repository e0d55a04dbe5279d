"""The Python worker of pagewise: reads a file in the ways that Python programs do, as ../PROTOCOL.md (version 5) says.

Python 3.8 or newer on Linux, the standard library alone; numpy for `numpy-memmap`, imported when a job asks for it.

    mmap            a slice of an mmap.mmap, which is a new bytes object: one copy, as programs do it. Copying on into a
                    buffer that is kept would be a second one. random: MADV_RANDOM of the whole span
    pread           os.preadv into a buffer of the thread
    readinto        seek and readinto of a raw file (io.FileIO) into a buffer of the thread; a scan seeks once
    numpy-memmap    a slice of a numpy.memmap, assigned to an array of the thread

A scan goes by pieces of 64 KiB. Which of them there are for which workload stands in OFFERS.

Threads are those of `threading`, under the interpreter's lock. A page fault in a slice of an mmap keeps that lock; a read
call gives it away, and so does numpy while it copies.

What is done with the bytes: `touch` unpacks the words of a read with one struct, `sum` adds a memoryview of words (numpy's
sum for numpy-memmap), `lines` is `count` of a newline. Sums are taken modulo 2^64 once a batch.

A failed call is told as `failed`. Any other exception is a defect: stack trace on stderr, status 1. Times are nanoseconds of
the monotonic clock, sizes bytes, words little-endian. An access to a mapping whose file has become shorter ends the process
by SIGBUS, which Python cannot catch; where it happened is then on stderr.
"""

import errno
import faulthandler
import io
import json
import mmap
import os
import queue
import struct
import sys
import threading
import time

PROTOCOL_VERSION = 6
WORKER_VERSION = "1.0"
# A line for each word of a method: how its bytes move, as the kernel sees it, and the options that it takes in each workload.
# `-`: it is not for it; `none`: it takes none. `hello` is made of this, jobs are checked by it, and pagewise itself reads it.
OFFERS = """
word          access  reads   scan  append  fill  by
mmap          mmap    random  none  -       -     slices of an mmap.mmap
pread         pread   none    none  -       -     os.preadv into a buffer
readinto      read    none    none  -       -     seek and readinto of a raw file
numpy-memmap  mmap    none    none  -       -     slices of a numpy.memmap
"""
SCAN_PIECE_BYTES = 64 << 10
WORD_MASK = (1 << 64) - 1

now_ns = time.monotonic_ns


# ---------------------------------------------------------------------------------------------------------------------
# The conversation
# ---------------------------------------------------------------------------------------------------------------------


class Talk:
    """The two ends of the conversation. Its stdout is a descriptor of its own; descriptor 1 and sys.stdout lead to stderr, so
    that nothing else in the process can say anything to pagewise."""

    def __init__(self):
        self.replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self.requests = sys.stdin.buffer

    def next(self):
        """The next request; None at the end of stdin."""
        line = self.requests.readline()
        return json.loads(line) if line else None

    def say(self, kind, **fields):
        """Sends a line."""
        self.replies.write(json.dumps({"type": kind, **fields}, separators=(",", ":")) + "\n")
        self.replies.flush()


def main():
    if sys.byteorder != "little":
        sys.exit("python worker: words are little-endian, and this machine's are not")
    faulthandler.enable()
    talk = Talk()
    talk.say(
        "hello",
        protocol=PROTOCOL_VERSION,
        worker="python",
        version="%s %s" % (WORKER_VERSION, interpreter()),
        worker_warmup=0,
        **{workload: ",".join(methods(workload)) for workload in WORKLOADS},
    )
    while True:
        request = talk.next()
        if request is None:
            return
        if request["type"] != "open":
            sys.exit("python worker: %r came where a job is to be opened" % request["type"])
        try:
            serve(talk, Job(request))
        except Failure as failure:
            talk.say("failed", **failure.fields)
            return


def interpreter():
    """Such as `cpython 3.11.7`."""
    return "%s %d.%d.%d" % ((sys.implementation.name,) + tuple(sys.version_info[:3]))


WORKLOADS = ("random-read", "sequential-read", "scan", "append", "fill")


def methods(workload):
    """The methods for a workload: each word, and each with each of its options."""
    columns, *lines = [line.split() for line in OFFERS.strip().split("\n")]
    column = columns.index("reads" if workload.endswith("-read") else workload)
    taken = [(line[0], line[column]) for line in lines if line[column] != "-"]
    by_word = [[word] + [word + ":" + option for option in options.split(",") if option != "none"] for word, options in taken]
    return sum(by_word, [])


class Job:
    """What `open` carries, by the names of ../PROTOCOL.md."""

    def __init__(self, fields):
        self.__dict__.update(fields)


def serve(talk, job):
    """Does one job, from `open` to `closed`."""
    started = now_ns()
    task = Task(job)
    crew = Crew(job, task)
    talk.say("opened", setup_ns=now_ns() - started)
    started = now_ns()
    if job.warm_page_tables == 1:
        crew.order_all(lambda member: member.work.warm())
    heart = Heart(job.heartbeat_ns) if job.heartbeat_ns > 0 else NoHeart()
    talk.say("ready", warmup_ns=now_ns() - started)
    while True:
        request = talk.next()
        if request is None:
            sys.exit(0)
        if request["type"] == "idle":
            heart.begin()
            time.sleep(request["idle_ns"] / 1e9)
            talk.say("idled", **heart.end())
        elif request["type"] == "go":
            heart.begin()
            sample = crew.sample(request)
            talk.say("sample", **sample, **heart.end())
        elif request["type"] == "verify":
            crew.hand_over(request["offsets"])
            talk.say("verified", reads=len(request["offsets"]))
        elif request["type"] == "close":
            started = now_ns()
            crew.end()
            task.close()
            heart.stop()
            talk.say("closed", teardown_ns=now_ns() - started, sync_ns=0)
            return
        else:
            sys.exit("python worker: %r came within a job" % request["type"])


# ---------------------------------------------------------------------------------------------------------------------
# Failures
# ---------------------------------------------------------------------------------------------------------------------


class Failure(Exception):
    """A call that failed, as the protocol carries it."""

    def __init__(self, call, path, detail, error_number=0, offset=0, unavailable=0):
        super().__init__(detail)
        self.fields = {
            "call": call,
            "errno": error_number,
            "path": path,
            "offset": offset,
            "detail": detail,
            "unavailable": unavailable,
        }


NOT_OFFERED = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES, errno.ENODEV)


def failed_call(call, path, error, offset=0):
    """A call that failed although it should work everywhere."""
    detail = "%s at offset %d of %s: %s" % (call, offset, path, error.strerror or error)
    return Failure(call, path, detail, error.errno or 0, offset)


def refused_call(call, path, error):
    """A call that some kernels, filesystems or policies do not offer; other errors remain failures."""
    failure = failed_call(call, path, error)
    failure.fields["unavailable"] = int(error.errno in NOT_OFFERED)
    return failure


def short_read(call, path, offset, expected, received):
    """A read that returned fewer bytes than were asked for."""
    detail = "%s at offset %d of %s returned %d of %d bytes" % (call, offset, path, received or 0, expected)
    return Failure(call, path, detail, 0, offset)


# ---------------------------------------------------------------------------------------------------------------------
# The file, opened in the way of a method
# ---------------------------------------------------------------------------------------------------------------------


class Source:
    """An open file: what the loops of a method read from. `close` releases it for good: no mapping and no descriptor is
    left for the garbage collector."""

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
            try:
                self.mapping.madvise(mmap.MADV_RANDOM)
            except OSError as error:
                raise refused_call("madvise(MADV_RANDOM)", self.path, error) from error

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
        """Unmaps and closes. An array over the mapping must be gone before the mapping can be closed."""
        self.array = None
        if self.mapping is not None:
            self.mapping.close()
        self.mapping = None
        self.file.close()


def guarded_map(path, make):
    """A mapping, or why there is none. mmap.mmap says ValueError where the file is shorter than what is to be mapped."""
    try:
        return make()
    except OSError as error:
        raise failed_call("mmap", path, error) from error
    except ValueError as error:
        raise Failure("mmap", path, "mmap of %s: %s" % (path, error)) from error


def import_numpy(job):
    """numpy, or why the method is unavailable. What the import takes is a part of set-up, once in a process."""
    try:
        import numpy
    except ImportError as error:
        detail = "numpy-memmap needs numpy, which %s (%s) cannot import: %s" % (sys.executable, interpreter(), error)
        raise Failure("import numpy", job.path, detail, unavailable=1) from error
    return numpy


# ---------------------------------------------------------------------------------------------------------------------
# Loops: one is compiled for each way to move bytes and to consume them, as timeit does. No option is asked inside
# ---------------------------------------------------------------------------------------------------------------------

# How `size` bytes from `offset` on become `data`.
MOVES = {
    "mmap": "data = mapping[offset:offset + size]",
    "pread": """\
if (received := preadv(descriptor, views, offset)) != size:
    raise short_read("preadv", path, offset, size, received)""",
    "readinto": """\
seek(offset)
if (received := readinto(view)) != size:
    raise short_read("read", path, offset, size, received)""",
    # From where the read before ended.
    "readinto on": """\
if (received := readinto(view)) != size:
    raise short_read("read", path, offset, size, received)""",
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

# Timed region: `for each (weight, offset): move; total += weight * consume`. The weight of the first read is given.
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

# Timed region: `for each operation: link = 0; for each entry: offset = entry ^ link; offset <= last; move; link = first word;
# total += weight * consume; weight += 2`.
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
    lines = []
    for line in template.strip().split("\n"):
        at = len(line) - len(line.lstrip())
        lines.append(line.format(move=indented(move, at), consume=consume))
    body = "    " + indented("\n".join(lines), 4)
    made = {}
    exec(FACTORY.format(names=", ".join(names), body=body, function=function), globals(), made)
    return made["factory"](**names)


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
        }
        if source.kind != "mmap":
            self.make_buffer(source)
        self.move = MOVES[source.kind + (" on" if continued else "")]
        self.consume = getattr(self, consume)(source.kind, job.page_bytes, touch_last)

    def make_buffer(self, source):
        """A buffer of a thread. It ends with zeros that no read overwrites, so that its last word is whole."""
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
        """The words at multiples of a page, and the last one."""
        count = (self.size + page_bytes - 1) // page_bytes
        partial = self.size - (count - 1) * page_bytes < 8
        # Only a buffer has zeros behind it; of a bytes object the last page's word is padded by itself.
        apart = kind == "mmap" and partial
        words = count - apart
        self.names["pages"] = struct.Struct("<" + "Q%dx" % (page_bytes - 8) * (words - 1) + "Q" * min(words, 1)).unpack_from
        terms = ["sum(pages(%s))" % self.whole(kind)]
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
        """`read(offsets, weight)`: reads at all of them, and the checksum in which the first counts `weight` times and each
        further one 2 times more."""
        return compiled("read", READS, self.move, self.consume, self.names)

    def dependent_reads(self, job):
        """The same for entries of the table whose offsets follow from what was read."""

        def astray(offset):
            detail = (
                "a dependent read of %s led to offset %d, beyond the %d bytes that are read: its data are not those "
                "that the offset table was made of" % (job.path, offset, job.span_bytes)
            )
            return Failure("dependent read", job.path, detail, 0, offset)

        last_offset = job.span_bytes - job.read_bytes
        names = dict(self.names, reads_per_op=job.reads_per_op, last_offset=last_offset, astray=astray)
        return compiled("read", DEPENDENT_READS, self.move, self.consume, names)

    def fetch(self):
        """`fetch(offset)`: the bytes of one read."""
        return compiled("fetch", FETCH, self.move, "", self.names)


# ---------------------------------------------------------------------------------------------------------------------
# Tasks: a job, understood and opened; one work for each thread
# ---------------------------------------------------------------------------------------------------------------------


class Task:
    """The work of a job, and what it has open."""

    def __init__(self, job):
        self.sources = []
        self.table = None
        self.works = []
        known = methods(job.workload) if job.workload in WORKLOADS else []
        if job.method not in known:
            has = "the python worker has no method '%s' for %s; it has %s" % (job.method, job.workload, ", ".join(known))
            raise Failure("open", job.path, has, unavailable=1)
        if job.consume not in ("touch", "sum", "lines"):
            detail = "the python worker cannot consume by '%s'" % job.consume
            raise Failure("open", job.path, detail, unavailable=1)
        if job.page_bytes < 8:
            raise Failure("open", job.path, "pages of %d bytes have no word to touch" % job.page_bytes)
        self.scans = job.workload == "scan"
        if self.scans:
            self.open_scan(job)
        else:
            self.open_reads(job)

    def open_scan(self, job):
        if job.threads != 1:
            raise Failure("open", job.path, "a scan is the work of one thread, not of %d" % job.threads)
        self.sources.append(Source(job))
        self.works.append(Pass(job, self.sources[0]))

    def open_reads(self, job):
        self.refuse_reads(job)
        self.table = Table(job)
        operations = job.table_reads // job.reads_per_op // job.threads
        part_reads = operations * job.reads_per_op
        for thread in range(job.threads):
            if thread == 0 or job.descriptor == "per-thread":
                self.sources.append(Source(job))
            first_read = thread * part_reads
            part = self.table.part(first_read, part_reads)
            self.works.append(TableReads(job, self.sources[-1], part, first_read, operations))

    @staticmethod
    def refuse_reads(job):
        """Jobs that make no sense, or that the method cannot do."""
        if min(job.threads, job.read_bytes, job.reads_per_op) == 0:
            raise Failure("open", job.path, "threads, read_bytes and reads_per_op of a job of reads are above 0")
        if job.table_reads // job.reads_per_op < job.threads:
            detail = "a table of %d reads has no operation of %d for each of %d threads"
            raise Failure("open", job.table_path, detail % (job.table_reads, job.reads_per_op, job.threads))
        if job.dependent == 1 and job.read_bytes < 8:
            detail = "dependent reads need 8 bytes of data to follow, not the %d that a read has" % job.read_bytes
            raise Failure("dependent read", job.path, detail, unavailable=1)
        if job.method == "readinto" and job.threads > 1 and job.descriptor != "per-thread":
            detail = (
                "readinto reads from the descriptor's position, which threads cannot share: with more than one thread it "
                "needs a descriptor for each (descriptor = per-thread)"
            )
            raise Failure("open", job.path, detail, unavailable=1)

    def close(self):
        """Unmaps and closes all. The loops that hold buffers of the mappings go first."""
        for work in self.works:
            work.release()
        self.works = []
        for source in self.sources:
            source.close()
        if self.table is not None:
            self.table.close()


class Table:
    """The offset table, mapped: it is pagewise's memory, and costs the worker none. It holds zeros until `go`, and another table
    with each."""

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


class TableReads:
    """Reads of one thread by its part of the table."""

    def __init__(self, job, source, part, first_read, operations):
        self.source = source
        self.part = part
        # What the checksum of the part's first read counts: 2 * its place in the table + 1.
        self.first_weight = 2 * first_read + 1
        self.operations = operations
        self.reads_per_op = job.reads_per_op
        self.op_bytes = job.reads_per_op * job.read_bytes
        loops = Loops(job, source, job.read_bytes, job.consume, job.touch_last == 1)
        self.read = loops.dependent_reads(job) if job.dependent == 1 else loops.reads()
        self.fetch = loops.fetch()

    def warm(self):
        self.source.warm()

    def release(self):
        """Lets go of the table and, with the loops, of arrays over the mapping."""
        self.part.release()
        self.read = self.fetch = self.source = None


class Pass:
    """A pass over the span in pieces, those of full size and the rest behind them."""

    def __init__(self, job, source):
        self.source = source
        self.op_bytes = job.span_bytes
        if job.consume == "touch" and SCAN_PIECE_BYTES % job.page_bytes != 0:
            detail = "pieces of %d bytes are no multiple of %d, and one word of each page is touched"
            raise Failure("open", job.path, detail % (SCAN_PIECE_BYTES, job.page_bytes), unavailable=1)
        full = job.span_bytes // SCAN_PIECE_BYTES * SCAN_PIECE_BYTES
        rest = job.span_bytes - full
        continued = job.method == "readinto"
        self.rewind = source.file.seek if continued else None
        self.pieces = range(0, full, SCAN_PIECE_BYTES)
        # The last word of each piece would make the checksum depend on where pieces end.
        self.read_pieces = Loops(job, source, SCAN_PIECE_BYTES, job.consume, False, continued).pieces()
        self.rest = range(full, full + min(rest, 1))
        self.read_rest = Loops(job, source, max(rest, 1), job.consume, False, continued).pieces()

    def scan(self):
        """Consumes the span, and returns its checksum."""
        if self.rewind is not None:
            self.rewind(0)
        return (self.read_pieces(self.pieces) + self.read_rest(self.rest)) & WORD_MASK

    def warm(self):
        self.source.warm()

    def fetch(self, offset):
        raise Failure("verify", self.source.path, "there is no single read in a scan", 0, offset)

    def release(self):
        self.read_pieces = self.read_rest = self.rewind = self.source = None


# ---------------------------------------------------------------------------------------------------------------------
# Threads: alive from `open` to `close`
# ---------------------------------------------------------------------------------------------------------------------


class Part:
    """What one thread did in a sample."""

    def __init__(self):
        self.begun = self.ended = 0
        self.operations = 0
        self.latency_begun = self.latency_ended = 0
        self.latency_operations = 0
        self.checksum = 0
        self.stalls = Stalls()
        self.latencies = Histogram()


class Member:
    """A thread that waits for orders: functions of itself, whose result or exception is the answer."""

    def __init__(self, work):
        self.work = work
        self.orders = queue.SimpleQueue()
        self.answers = queue.SimpleQueue()
        # A daemon, so that a failure ends the process while others wait.
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            order = self.orders.get()
            if order is None:
                return
            try:
                answer = (order(self), None)
            except BaseException as error:
                answer = (None, error)
            # Kept no longer, since they may hold what `close` is to release.
            del order
            self.answers.put(answer)
            del answer

    def answer(self):
        result, error = self.answers.get()
        if error is not None:
            raise error
        return result


class Crew:
    """The threads of a job."""

    def __init__(self, job, task):
        self.job = job
        self.scans = task.scans
        self.rendezvous = threading.Barrier(len(task.works))
        self.batched = False
        self.members = [Member(work) for work in task.works]

    def order_all(self, order):
        """Has all threads do something. Of several failures the first is raised, when all have answered."""
        for member in self.members:
            member.orders.put(order)
        answers = [member.answers.get() for member in self.members]
        for _, error in answers:
            if error is not None:
                raise error
        return [result for result, _ in answers]

    def sample(self, go):
        """Has every thread do its part, and adds up what they did."""
        self.batched = False
        order = do_pass if self.scans else lambda member: self.read_for(member, go)
        parts = self.order_all(order)
        timed = [part for part in parts if part.latency_operations > 0]
        latencies = Histogram()
        for part in parts:
            latencies.add(part.latencies)
        latency_ns, latency_counts = latencies.recorded()
        done = [part.operations + part.latency_operations for part in parts]
        elapsed = max(part.latency_ended for part in timed) - min(part.latency_begun for part in timed) if timed else 0
        return {
            "operations": sum(part.operations for part in parts),
            "elapsed_ns": max(part.ended for part in parts) - min(part.begun for part in parts),
            "latency_operations": sum(part.latency_operations for part in parts),
            "latency_elapsed_ns": elapsed,
            "thread_operations": done,
            "bytes": sum(count * member.work.op_bytes for count, member in zip(done, self.members)),
            "checksum": "%016x" % (sum(part.checksum for part in parts) & WORD_MASK),
            "latency_ns": latency_ns,
            "latency_counts": latency_counts,
            "stalls": sum(part.stalls.count for part in parts),
            "stall_longest_ns": max(part.stalls.longest_ns for part in parts),
        }

    def read_for(self, member, go):
        """One thread's part of a sample of reads. All threads are in the same phase."""
        part, job = Part(), self.job
        budget = Budget(job.max_device_bytes // 4 * 3) if job.max_device_bytes > 0 else None
        self.rendezvous.wait()
        try:
            if throughput(member.work, part, go, job.max_thread_operations, budget):
                self.batched = True
        finally:
            # A thread that failed still comes to where the others wait for it.
            self.rendezvous.wait()
        if self.batched and go["latency_ns"] > 0:
            part.latencies = Histogram()
            budget = Budget(job.max_device_bytes // 4) if job.max_device_bytes > 0 else None
            latency(member.work, part, go, job.max_thread_operations, budget)
        return part

    def hand_over(self, offsets):
        """Has the first thread do single reads and puts their bytes into the hand-over memory."""
        path, read_bytes = self.job.handover_path, self.job.read_bytes

        def fetch(member):
            try:
                with io.FileIO(path, "r+") as handover:
                    for index, offset in enumerate(offsets):
                        written = os.pwrite(handover.fileno(), member.work.fetch(offset), index * read_bytes)
                        if written != read_bytes:
                            raise short_read("pwrite", path, index * read_bytes, read_bytes, written)
            except OSError as error:
                raise failed_call("pwrite", path, error) from error

        self.members[0].orders.put(fetch)
        self.members[0].answer()

    def end(self):
        """Ends the threads."""
        for member in self.members:
            member.orders.put(None)
        for member in self.members:
            member.thread.join()
            member.work = None


# ---------------------------------------------------------------------------------------------------------------------
# Samples
# ---------------------------------------------------------------------------------------------------------------------

# A batch shorter than this is doubled; one of several operations longer than that is halved.
BATCH_MIN_NS = 50_000
BATCH_MAX_NS = 200_000
# What a batch must take beyond its operations' average to be called stalled.
STALL_NS = 1_000_000
# How often the device budget is looked at: it costs a system call.
BUDGET_CHECK_NS = 1_000_000


class Budget:
    """Ends a phase when storage has read enough for this process. Where the kernel does not count there is no bound."""

    def __init__(self, size):
        self.next_ns = 0
        try:
            self.counters = io.FileIO("/proc/self/io", "r")
        except OSError:
            self.counters = None
            return
        self.end = self.read_bytes() + size

    def read_bytes(self):
        """What storage has read for the process."""
        text = os.pread(self.counters.fileno(), 512, 0)
        return int(text[text.index(b"\nread_bytes: ") + 13 :].split(b"\n", 1)[0])

    def is_spent(self, at_ns):
        if self.counters is None or at_ns < self.next_ns:
            return False
        self.next_ns = at_ns + BUDGET_CHECK_NS
        return self.read_bytes() >= self.end


def throughput(work, part, go, max_operations, budget):
    """Batches of operations, one clock a batch. Returns whether any had several operations: then their times are no
    latencies."""
    read, table, reads_per_op, clock, record = work.read, work.part, work.reads_per_op, now_ns, part.latencies.record
    note = part.stalls.note
    shortest, longest, end = BATCH_MIN_NS, BATCH_MAX_NS, work.operations * work.reads_per_op
    first_weight = work.first_weight
    # All of these are reads: `start` in the part, `base` what was done before the part's begin, so that base + start are done.
    start = go["first_operation"] % work.operations * reads_per_op
    base, bound = -start, (max(max_operations * 3 // 4, 1) if max_operations > 0 else 1 << 60) * reads_per_op
    limit = min(end, bound - base)
    checksum, batch, batched, look = 0, reads_per_op, False, 0
    part.begun = before = clock()
    deadline = before + go["sample_ns"]
    while True:
        stop = start + batch
        if stop > limit:
            stop = limit
        checksum += read(table[start:stop], first_weight + 2 * start)
        after = clock()
        note((stop - start) // reads_per_op, after - before)
        # Most batches end here: 20 reads of 16 KiB take 70 us, and what follows 2.
        if shortest <= after - before <= longest and stop < limit and after < look:
            start, before = stop, after
            continue
        took = after - before
        if batch == reads_per_op:
            record(took)
        if after >= deadline or base + stop == bound or (budget is not None and budget.is_spent(after)):
            break
        if took < shortest:
            if stop - start == batch:
                batch, batched = batch * 2, True
        elif took > longest and batch > reads_per_op:
            batch //= 2
        # The next time that there is more to do: at once where single operations are recorded.
        look = 0 if batch == reads_per_op else deadline if budget is None else min(deadline, budget.next_ns)
        start = stop
        if stop == end:
            base, start = base + end, 0
            limit = min(end, bound - base)
        before = after
    part.ended = clock()
    part.operations, part.checksum = (base + stop) // reads_per_op, checksum & WORD_MASK
    return batched


def latency(work, part, go, max_operations, budget):
    """Goes on where throughput ended, with a clock around each operation."""
    read, table, operations, reads_per_op = work.read, work.part, work.operations, work.reads_per_op
    first_weight = work.first_weight
    clock, record = now_ns, part.latencies.record
    position = go["first_operation"] + part.operations
    left = max(max_operations - part.operations, 0) if max_operations > 0 else 1 << 64
    done = checksum = 0
    part.latency_begun = after = clock()
    deadline = after + go["latency_ns"]
    while after < deadline and done < left and not (budget is not None and budget.is_spent(after)):
        start = (position + done) % operations * reads_per_op
        entries = table[start : start + reads_per_op]
        before = clock()
        checksum += read(entries, first_weight + 2 * start)
        after = clock()
        record(after - before)
        done += 1
    part.latency_ended = after
    part.latency_operations = done
    part.checksum = (part.checksum + checksum) & WORD_MASK


def do_pass(member):
    """One pass over the span: one operation, whose time is its latency."""
    part = Part()
    part.begun = now_ns()
    part.checksum = member.work.scan()
    part.ended = now_ns()
    part.operations = 1
    part.latencies.record(part.ended - part.begun)
    return part


class Stalls:
    """Batches that took over 1 ms more, and over twice as much, as their operations take on average. A stalled one counts in the
    average as what it should have taken, or one long stall would hide those after it."""

    def __init__(self):
        self.count = self.longest_ns = 0
        # What operations take without stalls.
        self.operations = self.took_ns = 0
        # The very first batch, until there is another to compare it with; alone it is no stall.
        self.first = None

    def note(self, operations, took_ns):
        if took_ns < STALL_NS and self.operations > 0:
            self.operations += operations
            self.took_ns += took_ns
        elif self.operations > 0:
            self.compare(operations, took_ns)
        elif self.first is None:
            self.first = operations, took_ns
        else:
            # Of the first two the one with the faster operations is the measure of the other.
            calm, other = self.first, (operations, took_ns)
            if pace(*calm, 1) > pace(*other, 1):
                calm, other = other, calm
            self.operations, self.took_ns = calm
            self.compare(*other)

    def compare(self, operations, took_ns):
        due_ns = pace(self.operations, self.took_ns, operations)
        if took_ns > due_ns + max(due_ns, STALL_NS):
            self.count += 1
            self.longest_ns = max(self.longest_ns, took_ns - pace(self.operations, self.took_ns, operations - 1))
            took_ns = due_ns
        self.operations += operations
        self.took_ns += took_ns


def pace(of, took_ns, operations):
    """What `operations` take where so many took so long; by doubles, as in every language's worker."""
    return int(float(took_ns) * operations / of)


class Histogram:
    """Counts of nanoseconds. Below 256 each value has a bucket of its own; from there on 128 buckets share a power of two,
    so that none is wider than 1/128 of its value. Values beyond the last bucket, 137 s, count there."""

    BITS = 37

    def __init__(self):
        self.counts = [0] * (256 + (self.BITS - 8) * 128)

    def record(self, value):
        shift = value.bit_length() - 8
        if shift <= 0:
            self.counts[value] += 1
        elif shift <= self.BITS - 8:
            self.counts[shift * 128 + (value >> shift)] += 1
        else:
            self.counts[-1] += 1

    def add(self, other):
        self.counts = [one + another for one, another in zip(self.counts, other.counts)]

    def recorded(self):
        """The upper ends of buckets that hold something, and how much."""
        held = [(index, count) for index, count in enumerate(self.counts) if count > 0]
        return [self.end(index) for index, _ in held], [count for _, count in held]

    @staticmethod
    def end(index):
        shift = max(index // 128 - 1, 0)
        return ((index - shift * 128 + 1) << shift) - 1


# ---------------------------------------------------------------------------------------------------------------------
# Heartbeats
# ---------------------------------------------------------------------------------------------------------------------


class Heart:
    """A thread that does nothing but sleep, and notes how late it is woken: what a method does to every other thread under
    the interpreter's lock. A beat counts with what it was late by within the region."""

    def __init__(self, interval_ns):
        self.interval_ns = interval_ns
        self.lock = threading.Lock()
        self.delays = Histogram()
        # Begin of the region; None: beats do not count.
        self.since_ns = None
        self.due_ns = now_ns() + interval_ns
        self.stopped = False
        threading.Thread(target=self.beat, daemon=True).start()

    def beat(self):
        while not self.stopped:
            time.sleep(self.interval_ns / 1e9)
            with self.lock:
                self.note(now_ns())
                self.due_ns = now_ns() + self.interval_ns

    def note(self, at_ns):
        """Counts a beat that is due or late."""
        if self.since_ns is not None and at_ns >= max(self.due_ns, self.since_ns):
            self.delays.record(max(at_ns - max(self.due_ns, self.since_ns), 1))

    def begin(self):
        """From now on beats count."""
        with self.lock:
            self.delays = Histogram()
            self.since_ns = now_ns()

    def end(self):
        """They count no more. One that is still late counts with what it is late by."""
        with self.lock:
            at_ns = now_ns()
            if at_ns > self.due_ns:
                self.note(at_ns)
            self.since_ns = None
            ends, counts = self.delays.recorded()
        return {
            "heartbeat_kinds": "thread",
            "heartbeat_buckets": [len(ends)],
            "heartbeat_ns": ends,
            "heartbeat_counts": counts,
        }

    def stop(self):
        """Has the thread end at its next beat."""
        self.stopped = True


class NoHeart:
    """In place of a heart where the job asks for none."""

    def begin(self):
        pass

    def end(self):
        return {}

    def stop(self):
        pass


if __name__ == "__main__":
    main()
