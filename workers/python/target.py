"""The file that is written, and the calls that put written bytes on the device."""

import io
import mmap
import os

from failures import Failure, failed_call, short_call
from histogram import Histogram
from offers import parse_size
from samples import now_ns
from sources import advise_random, guarded_map

CALLS = {"mmap": "mmap", "write": "write", "pwrite": "pwrite", "buffered-writer": "write"}
# Calls that follow the writes and know no range.
SYNCS = {"fdatasync": os.fdatasync, "fsync": os.fsync}
# Of pwritev2(2); some builds of Python do not name it.
RWF_DSYNC = getattr(os, "RWF_DSYNC", 2)


class Target:
    """The file that is written, with the cursor in its ring of whole records, and what is not
    synced yet."""

    def __init__(self, job, word):
        self.path = job.path
        self.word = word
        self.mapping = None
        self.file_bytes = job.file_bytes
        self.ring_bytes = job.file_bytes // job.record_bytes * job.record_bytes
        self.sync_bytes = sync_interval(job)
        self.cursor = self.unsynced = 0
        # Updates are anywhere, so a sync covers all.
        self.in_order = job.workload != "update"
        self.call = job.sync_call
        # Writes that are syncs; no other call follows.
        self.writes_sync = self.call in ("O_DSYNC", "RWF_DSYNC")
        if self.writes_sync:
            self.sync_bytes = None
        self.refuse_sync(job)
        # Durations of the syncs within the measured region.
        self.syncs = Histogram()
        flag = os.O_DSYNC if self.call == "O_DSYNC" else 0
        try:
            self.file = io.FileIO(job.path, "r+", opener=lambda path, flags: os.open(path, flags | flag))
        except OSError as error:
            raise failed_call("open", job.path, error) from error
        self.descriptor = self.file.fileno()
        if self.word == "mmap":
            self.mapping = guarded_map(job.path, lambda: mmap.mmap(self.descriptor, job.file_bytes, mmap.MAP_SHARED))
            if job.method == "mmap:random":
                advise_random(self.mapping, job.path)

    def refuse_sync(self, job):
        """Refuses a call that the method cannot use."""
        is_mapping = self.word == "mmap"
        known = {"msync": is_mapping, "O_DSYNC": not is_mapping, "RWF_DSYNC": self.word == "pwrite", "": job.sync == "none"}
        if self.call not in SYNCS and not known.get(self.call, False):
            raise Failure("open", job.path, "%s does not sync by '%s'" % (job.method, self.call), unavailable=1)

    def piece(self, left, record):
        """Bytes of whole records up to the end of the ring, or to the record after which a sync is
        due."""
        piece = min(left, self.ring_bytes - self.cursor)
        if self.sync_bytes is None:
            return piece
        return min(piece, -(-(self.sync_bytes - self.unsynced) // record) * record)

    def advance(self, count):
        """Counts bytes that reached the file at the cursor, at most to the end of the ring, which
        is its start. Returns whether a sync is due."""
        self.cursor += count
        self.unsynced += count
        if self.cursor == self.ring_bytes:
            self.cursor = 0
            if self.word != "mmap" and self.word != "pwrite":
                self.file.seek(0)
        return self.sync_bytes is not None and self.unsynced >= self.sync_bytes

    def put(self, all_bytes):
        """Writes bytes at the cursor by a call; where the end of the ring lies between, the second
        part at its start."""
        due = False
        while len(all_bytes) > 0:
            some = all_bytes[: self.ring_bytes - self.cursor]
            self.write(some)
            due |= self.advance(len(some))
            all_bytes = all_bytes[len(some) :]
        if due:
            self.sync()

    def write(self, some):
        """One call at the cursor."""
        call = CALLS[self.word]
        try:
            begun = now_ns()
            if self.call == "RWF_DSYNC":
                written = os.pwritev(self.descriptor, (some,), self.cursor, RWF_DSYNC)
            elif self.word == "pwrite":
                written = os.pwrite(self.descriptor, some, self.cursor)
            else:
                written = os.write(self.descriptor, some)
            if self.writes_sync:
                self.syncs.record(now_ns() - begun)
        except OSError as error:
            raise failed_call(call, self.path, error, self.cursor) from error
        if written != len(some):
            raise short_call(call, self.path, self.cursor, len(some), written)

    def sync(self):
        """Waits until what is not synced yet is on the device: of a mapping in two parts where the
        end of the ring lies between."""
        begin = self.cursor - self.unsynced
        begun = now_ns()
        if self.unsynced >= self.ring_bytes or not self.in_order:
            self.sync_ranges((0, self.ring_bytes))
        elif begin >= 0:
            self.sync_ranges((begin, self.cursor))
        else:
            self.sync_ranges((begin + self.ring_bytes, self.ring_bytes), (0, self.cursor))
        self.syncs.record(now_ns() - begun)
        self.unsynced = 0

    def sync_rest(self):
        """Syncs what is left at the end of the measured region, if syncs belong to it."""
        if self.sync_bytes is not None and self.unsynced > 0:
            self.sync()

    def sync_all(self):
        self.sync_ranges((0, self.file_bytes))

    def sync_ranges(self, *ranges):
        """msync(2) of ranges of a mapping, or a call that knows none."""
        try:
            if self.call in SYNCS:
                SYNCS[self.call](self.descriptor)
                return
            for start, stop in ranges:
                start -= start % mmap.PAGESIZE
                if start < stop:
                    self.mapping.flush(start, stop - start)
        except OSError as error:
            raise failed_call(self.call, self.path, error) from error

    def close(self):
        """Unmaps and closes."""
        if self.mapping is not None:
            self.mapping.close()
        self.file.close()


def sync_interval(job):
    """After how many bytes a sync is due within the measured region; None: never."""
    if job.sync in ("none", "end"):
        return None
    if job.sync == "commit":
        return 1
    size = parse_size(job.sync[len("every:") :]) if job.sync.startswith("every:") else 0
    if size == 0:
        raise Failure("open", job.path, "the python worker cannot sync by '%s'" % job.sync, unavailable=1)
    return size


class RawTarget(io.RawIOBase):
    """The raw file to which an io.BufferedWriter writes its full buffer; a record may go on in the
    next."""

    def __init__(self, target):
        super().__init__()
        self.target = target

    def writable(self):
        return True

    def write(self, all_bytes):
        self.target.put(all_bytes)
        return len(all_bytes)
