"""The pieces of a thread's part of the offset table."""

from loops import WORD_MASK, astray


class Pieces:
    """The progress of a `go` in a part. Entries are XORed with a mask: the checksum of the piece
    before the last one, and 0 in the first two of each pass. Positions count reads from where the
    `go` began."""

    def __init__(self, job, part):
        self.job = job
        self.part = part
        self.size = min(job.piece_reads or len(part), len(part))
        self.begin(0)

    def begin(self, first):
        """A `go` begins at this read of the part."""
        self.first = first
        self.start = self.end = 0
        self.entries = ()
        self.last = self.sum = 0

    def next(self):
        """Goes on to the next piece: its entries are what `entries` holds."""
        reads = len(self.part)
        in_pass = self.end % reads
        mask = self.last if in_pass >= 2 * self.size else 0
        self.last, self.sum = self.sum & WORD_MASK, 0
        count = min(self.size, reads - in_pass)
        at = (self.first + in_pass) % reads
        entries = bytes(self.part[at : at + count])
        if at + count > reads:
            entries += bytes(self.part[: at + count - reads])
        if mask:
            # One number for all: in Python a loop over entries costs as much as a read.
            ones = ((1 << 64 * count) - 1) // WORD_MASK
            entries = (int.from_bytes(entries, "little") ^ ones * mask).to_bytes(8 * count, "little")
        self.entries = memoryview(entries).cast("Q")
        self.start, self.end = self.end, self.end + count
        # Dependent reads are checked one by one. Of others the largest decides: a mapping would be
        # read short and say nothing.
        if self.job.dependent == 0:
            largest = max(self.entries)
            if largest > self.job.span_bytes - self.job.read_bytes:
                raise astray(self.job, largest)
