"""Tasks: a job, understood and opened; one work for each thread."""

from amount import do_commits, do_pass, do_records
from failures import Failure
from loops import WORD_MASK, Loops
from offers import parse
from pieces import Pieces
from records import Records
from sources import Source, Table
from target import Target
from updates import Updates

SCAN_PIECE_BYTES = 64 << 10


class Task:
    """The work of a job, and what it has open."""

    def __init__(self, job):
        self.sources = []
        self.table = None
        self.works = []
        # A thread's loop for a sample that is an amount of work; None: reads last a time.
        self.amount = None
        word, buffer_bytes = parse(job)
        if job.workload in ("append", "fill", "update"):
            self.open_records(job, word, buffer_bytes)
            return
        if job.consume not in ("touch", "sum", "lines"):
            detail = "the python worker cannot consume by '%s'" % job.consume
            raise Failure("open", job.path, detail, unavailable=1)
        if job.page_bytes < 8:
            raise Failure("open", job.path, "pages of %d bytes have no word to touch" % job.page_bytes)
        if job.workload == "scan":
            self.open_scan(job)
        else:
            self.open_reads(job)

    def open_records(self, job, word, buffer_bytes):
        one_thread(job)
        if min(job.record_bytes, job.source_period) == 0:
            raise Failure("open", job.path, "record_bytes and source_period of a job that writes are above 0")
        if job.record_bytes > job.file_bytes:
            detail = "a record of %d bytes does not fit into %s, which has %d"
            raise Failure("open", job.path, detail % (job.record_bytes, job.path, job.file_bytes))
        if 0 < buffer_bytes < job.record_bytes:
            detail = "a record of %d bytes does not fit into the buffer of %s, which has %d"
            raise Failure("open", job.path, detail % (job.record_bytes, job.method, buffer_bytes), unavailable=1)
        if job.sync == "commit" and buffer_bytes > 0:
            detail = "%s collects records, and with commit none may stay in a buffer"
            raise Failure("open", job.path, detail % job.method, unavailable=1)
        self.amount = do_commits if job.sync == "commit" else do_records
        self.sources.append(Target(job, word))
        if job.workload == "update":
            self.table = Table(job)
            self.works.append(Updates(job, self.sources[0], self.table))
        else:
            self.works.append(Records(job, self.sources[0], buffer_bytes))

    def open_scan(self, job):
        one_thread(job)
        self.amount = do_pass
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


def one_thread(job):
    """Refuses more than one."""
    if job.threads != 1:
        raise Failure("open", job.path, "%s is the work of one thread, not of %d" % (job.workload, job.threads))


class TableReads:
    """Reads of one thread by its part of the table."""

    syncs = None

    def __init__(self, job, source, part, first_read, operations):
        self.source = source
        self.part = part
        # Weight of the checksum of the part's first read: 2 * its position in the table + 1.
        self.first_weight = 2 * first_read + 1
        self.operations = operations
        self.reads_per_op = job.reads_per_op
        self.op_bytes = job.reads_per_op * job.read_bytes
        loops = Loops(job, source, job.read_bytes, job.consume, job.touch_last == 1)
        self.loop_of = loops.dependent_reads(job) if job.dependent == 1 else loops.reads()
        self.loop = None
        self.fetch = loops.fetch()
        self.pieces = Pieces(job, part)
        self.position = 0

    def begin(self, go):
        """A sample begins, before its clock."""
        self.loop = self.loop_of(go["touch_at"])
        self.position = 0
        self.pieces.begin(go["first_operation"] % self.operations * self.reads_per_op)

    def read(self, start, stop):
        """Does these reads of the part, which follow the last ones, and returns their checksum."""
        pieces, loop, weight = self.pieces, self.loop, self.first_weight
        total = 0
        while start < stop:
            if self.position == pieces.end:
                pieces.next()
            at = self.position - pieces.start
            count = min(stop - start, pieces.end - self.position)
            checksum = loop(pieces.entries[at : at + count], weight + 2 * start)
            pieces.sum += checksum
            total += checksum
            self.position += count
            start += count
        return total

    def warm(self):
        self.source.warm()

    def release(self):
        """Lets go of the table and, with the loops, of arrays over the mapping."""
        self.part.release()
        self.loop_of = self.loop = self.fetch = self.source = None


class Pass:
    """A pass over the span in pieces, those of full size and the rest behind them."""

    syncs = None

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
