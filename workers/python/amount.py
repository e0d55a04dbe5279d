"""Samples that are an amount: a scan's pass, and records."""

from loops import WORD_MASK
from samples import Part, now_ns
from stalls import pace

# A mean gap shorter than this is doubled, one longer than that is halved.
GAP_MIN_NS = 40_000
GAP_MAX_NS = 160_000
# After so many measures the mean gap has been found.
STEADY_MEASURES = 3


def do_pass(member, _go):
    """One pass over the span: one operation, whose time is its latency."""
    part = Part()
    part.begun = now_ns()
    part.checksum = member.work.scan()
    part.ended = now_ns()
    part.operations = 1
    part.latencies.record(part.ended - part.begun)
    return part


def do_records(member, go):
    """All records of the job, or as many as are written within `sample_ns`: batches of gap records, and after each one record
    timed by itself. What is collected in a buffer, and a sync that is due, belong to the region."""
    part, work = Part(), member.work
    append, clock, note, end = work.append, now_ns, part.stalls.note, work.records
    gaps, latencies = Gaps(work.gap_seed), Early(part.latencies)
    first = position = go["first_operation"]
    part.begun = now = clock()
    deadline = now + go["sample_ns"]
    while position < end and now < deadline:
        gap, before = gaps.draw(), now
        count = min(gap, end - position)
        # A single record has a clock of its own before it too, so that its latency is nothing but its own.
        begun = clock() if gap == 1 else before
        append(position, count)
        now = clock()
        position += count
        note(count, now - before)
        if gap == 1:
            latencies.record(now - begun)
        if position < end:
            if gaps.adapt(gap, now - before):
                latencies.forget()
            if gaps.steady == STEADY_MEASURES and latencies.early:
                latencies.close()
            before = now
            begun = clock()
            append(position, 1)
            now = clock()
            position += 1
            note(1, now - before)
            latencies.record(now - begun)
    work.finish()
    part.ended = clock()
    latencies.close()
    part.operations = position - first
    return part


def do_commits(member, go):
    """The same with a sync after each record. There are no gaps: each is timed."""
    part, work = Part(), member.work
    part.begun = clock = now_ns()
    deadline = clock + go["sample_ns"]
    while part.operations < work.records and clock < deadline:
        begun = now_ns()
        work.append(part.operations, 1)
        clock = now_ns()
        part.latencies.record(clock - begun)
        part.stalls.note(1, clock - begun)
        part.operations += 1
    part.ended = now_ns()
    return part


class Early:
    """Latencies, of which the first are kept back until the mean gap is found; those while it grows are thrown away."""

    MOST = 2 * STEADY_MEASURES + 2

    def __init__(self, histogram):
        self.histogram = histogram
        self.early = []
        self.record = self.keep

    def keep(self, took_ns):
        self.early.append(took_ns)
        if len(self.early) == self.MOST:
            # Further ones count at once, these when it is known whether the mean still grows.
            self.record = self.histogram.record

    def forget(self):
        self.early.clear()
        self.record = self.keep

    def close(self):
        """From now on all count."""
        for took_ns in self.early:
            self.histogram.record(took_ns)
        self.early.clear()
        self.record = self.histogram.record


class Gaps:
    """Lengths of batches between records that are timed by themselves."""

    def __init__(self, seed):
        # State of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
        self.random = seed
        self.mean = 1
        # Measures in a row that left the mean as it was.
        self.steady = 0

    def draw(self):
        """A number from 1 to twice the mean, exclusive."""
        self.random = self.random + 0x9E3779B97F4A7C15 & WORD_MASK
        value = (self.random ^ self.random >> 30) * 0xBF58476D1CE4E5B9 & WORD_MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & WORD_MASK
        return 1 + ((value ^ value >> 31) * (2 * self.mean - 1) >> 64)

    def adapt(self, gap, took_ns):
        """Makes the mean gap last 40 to 160 us. True while the mean grows from 1: what was timed until then was timed more
        often than what follows. Gaps shorter than the mean are no measure, since the clock is a part of what they take."""
        if gap < self.mean:
            return False
        mean_ns = pace(gap, took_ns, self.mean)
        if mean_ns < GAP_MIN_NS:
            self.mean *= 2
            begins = self.steady < STEADY_MEASURES
            if begins:
                self.steady = 0
            return begins
        if self.mean > 1 and mean_ns > GAP_MAX_NS:
            self.mean //= 2
        self.steady = min(self.steady + 1, STEADY_MEASURES)
        return False
