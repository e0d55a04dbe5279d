"""Updates: blocks at the offsets of a table, each after others that are read."""

from failures import Failure
from loops import WORD_MASK, Loops, compiled
from records import Writing, moving

# Timed region: `for each update: the reads before it; put`.
UPDATE = """
def put(offset):
    at = offset % period
    try:
        {move}
    except OSError as error:
        raise failed_call(call, path, error, offset) from error
"""


class Readable:
    """The file that is written, as a loop of reads knows it."""

    def __init__(self, target):
        self.kind = "mmap" if target.mapping is not None else "pread"
        self.path = target.path
        self.file = target.file
        self.mapping = target.mapping
        self.array = None


class Updates(Writing):
    """Blocks in the order of the table, by a call or a copy each."""

    def __init__(self, job, target, table):
        super().__init__(job, target)
        self.reads_each = job.reads_per_op
        if job.table_reads != job.records * (self.reads_each + 1):
            detail = "a table of %d accesses is not one of %d updates and %d reads before each"
            raise Failure("open", job.path, detail % (job.table_reads, job.records, self.reads_each))
        self.offsets = table.part(0, job.table_reads)
        move, names = moving(job, target)
        self.put = compiled("put", UPDATE, move, "", names)
        self.loop_of = self.read = None
        if self.reads_each > 0:
            self.loop_of = Loops(job, Readable(target), job.record_bytes, job.consume, job.touch_last == 1).reads()

    def begin(self, go):
        """A sample begins, before its clock."""
        self.checksum = 0
        if self.loop_of is not None:
            self.read = self.loop_of(go["touch_at"])

    def append(self, position, count):
        """Does the next updates."""
        if position != self.next:
            raise self.out_of_order(position)
        self.next = position + count
        target, offsets, put, read, reads_each = self.target, self.offsets, self.put, self.read, self.reads_each
        record, sync_bytes = self.record, target.sync_bytes
        at = position * (reads_each + 1)
        for index in range(position, position + count):
            if reads_each > 0:
                self.checksum += read(offsets[at : at + reads_each], 2 * index * reads_each + 1)
            put(offsets[at + reads_each])
            at += reads_each + 1
            target.unsynced += record
            if sync_bytes is not None and target.unsynced >= sync_bytes:
                target.sync()

    def finish(self):
        self.checksum &= WORD_MASK
        self.target.sync_rest()

    def release(self):
        self.offsets.release()
        self.put = self.loop_of = self.read = None
