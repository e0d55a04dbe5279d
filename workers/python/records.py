"""Records: append and fill."""

import io
import os

from failures import Failure, failed_call, short_call
from loops import compiled
from samples import now_ns
from target import CALLS, RWF_DSYNC, RawTarget

# Copies of a record from `at` of the source to `offset`: of the file, or of a buffer.
MOVES = {
    "mmap": "target[offset:offset + record] = source[at:at + record]",
    "write": """\
if (written := write(descriptor, source[at:at + record])) != record:
    raise short_call(call, path, offset, record, written)""",
    "pwrite": """\
if (written := pwrite(descriptor, source[at:at + record], offset)) != record:
    raise short_call(call, path, offset, record, written)""",
    "buffered-writer": "write(source[at:at + record])",
}
# With RWF_DSYNC the call of `pwrite` is pwritev2(2).
SYNCED_PWRITE = """\
if (written := pwritev(descriptor, (source[at:at + record],), offset, RWF_DSYNC)) != record:
    raise short_call(call, path, offset, record, written)"""
# A write that is a sync.
TIMED = """\
begun = now_ns()
%s
synced(now_ns() - begun)"""

# Timed region: `for each record: move; at = (at + record) mod period`.
RECORDS = """
def put(start, stop, at):
    try:
        for offset in range(start, stop, record):
            {move}
            at += step
            if at >= period:
                at -= period
    except OSError as error:
        raise failed_call(call, path, error, offset) from error
    return at
"""


class Writing:
    """What the ways to write have in common: the target, its syncs, and the next record."""

    def __init__(self, job, target):
        self.target = target
        self.syncs = target.syncs
        self.record = self.op_bytes = job.record_bytes
        self.records = job.records
        self.gap_seed = job.gap_seed
        self.next = self.checksum = 0

    def begin(self, _go):
        """A sample begins, before its clock."""

    def out_of_order(self, position):
        """The failure of a record that is not the next one."""
        detail = "record %d was asked for where record %d is next; they are written in order" % (position, self.next)
        return Failure("append", self.target.path, detail)

    def sync(self):
        self.target.sync_all()

    def warm(self):
        pass

    def fetch(self, offset):
        raise Failure("verify", self.target.path, "there is no read where records are written", 0, offset)


class Records(Writing):
    """Records in order, by a call or a copy each, or by way of a buffer."""

    def __init__(self, job, target, buffer_bytes):
        super().__init__(job, target)
        self.at = self.filled = 0
        self.buffer = self.writer = None
        move, names = moving(job, target)
        if target.word == "buffered-writer":
            move = MOVES[target.word]
            self.writer = io.BufferedWriter(RawTarget(target), buffer_bytes)
            names["write"] = self.writer.write
        elif buffer_bytes > 0:
            move = MOVES["mmap"]
            self.buffer = names["target"] = memoryview(bytearray(buffer_bytes // job.record_bytes * job.record_bytes))
        self.put = compiled("put", RECORDS, move, "", names)
        self.write = self.stream if self.writer is not None else self.collect if self.buffer is not None else self.call

    def append(self, position, count):
        """Writes the next records. They may stay in a buffer."""
        if position != self.next:
            raise self.out_of_order(position)
        self.next = position + count
        self.write(count * self.record)

    def stream(self, left):
        self.at = self.put(0, left, self.at)

    def call(self, left):
        target = self.target
        stop = target.cursor + left
        if stop < target.ring_bytes and (target.sync_bytes is None or target.unsynced + left < target.sync_bytes):
            # Nothing is due: most batches end here, and what follows takes as long as a write.
            self.at = self.put(target.cursor, stop, self.at)
            target.cursor = stop
            target.unsynced += left
            return
        while left > 0:
            piece = target.piece(left, self.record)
            self.at = self.put(target.cursor, target.cursor + piece, self.at)
            left -= piece
            if target.advance(piece):
                target.sync()

    def collect(self, left):
        size = len(self.buffer)
        while left > 0:
            if self.filled == size:
                self.flush()
            some = min(left, size - self.filled)
            self.at = self.put(self.filled, self.filled + some, self.at)
            self.filled += some
            left -= some

    def flush(self):
        """Puts what is collected into the file."""
        filled, self.filled = self.filled, 0
        if self.writer is not None:
            self.writer.flush()
        elif self.buffer is not None:
            self.target.put(self.buffer[:filled])

    def finish(self):
        self.flush()
        self.target.sync_rest()

    def release(self):
        self.put = self.write = self.buffer = self.writer = None


def moving(job, target):
    """The statements that move a record from `at` of the source to `offset` of the file, and the
    names that they know."""
    move = MOVES[target.word] if target.call != "RWF_DSYNC" else SYNCED_PWRITE
    names = {
        "record": job.record_bytes,
        "period": job.source_period,
        "step": job.record_bytes % job.source_period,
        "source": memoryview(read_source(job)),
        "path": job.path,
        "call": CALLS[target.word],
        "descriptor": target.descriptor,
        "target": target.mapping,
        "write": os.write,
        "pwrite": os.pwrite,
        "pwritev": os.pwritev,
        "RWF_DSYNC": RWF_DSYNC,
        "now_ns": now_ns,
        "synced": target.syncs.record,
    }
    return TIMED % move if target.writes_sync else move, names


def read_source(job):
    """The content of the records: a period and a record more."""
    length = job.source_period + job.record_bytes
    try:
        with io.FileIO(job.source_path, "r") as file:
            source = os.pread(file.fileno(), length, 0)
    except OSError as error:
        raise failed_call("pread", job.source_path, error) from error
    if len(source) != length:
        raise short_call("pread", job.source_path, 0, length, len(source))
    return source
