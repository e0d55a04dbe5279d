"""Samples: what one thread does between two clocks."""

import io
import os
import time

from histogram import Histogram
from loops import WORD_MASK
from stalls import Stalls

now_ns = time.monotonic_ns


class Part:
    """One thread's part of a sample."""

    def __init__(self, job):
        self.begun = self.ended = 0
        self.operations = 0
        self.latency_begun = self.latency_ended = 0
        self.latency_operations = 0
        self.checksum = 0
        self.stalls = Stalls(job.stall_ns)
        self.latencies = Histogram()


class Budget:
    """Ends a phase when storage has read enough for this process. Where the kernel does not count
    there is no bound."""

    def __init__(self, size, check_ns):
        self.next_ns = 0
        # Each look costs a system call.
        self.check_ns = check_ns
        try:
            self.counters = io.FileIO("/proc/self/io", "r")
        except OSError:
            self.counters = None
            return
        self.end = self.read_bytes() + size

    @classmethod
    def of(cls, size, job):
        """None where there is no bound."""
        return cls(size, job.device_check_ns) if size > 0 else None

    def read_bytes(self):
        """Bytes that storage has read for the process."""
        text = os.pread(self.counters.fileno(), 512, 0)
        return int(text[text.index(b"\nread_bytes: ") + 13 :].split(b"\n", 1)[0])

    def is_spent(self, at_ns):
        if self.counters is None or at_ns < self.next_ns:
            return False
        self.next_ns = at_ns + self.check_ns
        return self.read_bytes() >= self.end


def throughput(work, part, go, job, budget):
    """Batches of operations, one clock a batch. Returns whether any had several operations: then
    their times are no latencies."""
    read, reads_per_op, clock, record = work.read, work.reads_per_op, now_ns, part.latencies.record
    note = part.stalls.note
    shortest, longest, end = job.batch_min_ns, job.batch_max_ns, work.operations * work.reads_per_op
    max_operations = job.throughput_operations
    # All of these are reads: `start` in the part, `base` what was done before the part's begin, so
    # that base + start are done.
    start = go["first_operation"] % work.operations * reads_per_op
    base, bound = -start, (max_operations if max_operations > 0 else 1 << 60) * reads_per_op
    limit = min(end, bound - base)
    checksum, batch, batched, look = 0, reads_per_op, False, 0
    part.begun = before = clock()
    deadline = before + go["sample_ns"]
    while True:
        stop = start + batch
        if stop > limit:
            stop = limit
        checksum += read(start, stop)
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


def latency(work, part, go, job, budget):
    """Goes on where throughput ended, with a clock around each operation."""
    read, operations, reads_per_op = work.read, work.operations, work.reads_per_op
    clock, record = now_ns, part.latencies.record
    position = go["first_operation"] + part.operations
    most = job.max_thread_operations
    left = max(most - part.operations, 0) if most > 0 else 1 << 64
    done = checksum = 0
    part.latency_begun = after = clock()
    deadline = after + go["latency_ns"]
    while after < deadline and done < left and not (budget is not None and budget.is_spent(after)):
        start = (position + done) % operations * reads_per_op
        before = clock()
        checksum += read(start, start + reads_per_op)
        after = clock()
        record(after - before)
        done += 1
    part.latency_ended = after
    part.latency_operations = done
    part.checksum = (part.checksum + checksum) & WORD_MASK
