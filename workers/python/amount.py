"""Samples that are an amount: a scan's pass, and records."""

from loops import WORD_MASK
from samples import Part, now_ns
from stalls import pace


def do_pass(member, _go, job):
    """One pass over the span: one operation, whose time is its latency."""
    part = Part(job)
    part.begun = now_ns()
    part.checksum = member.work.scan()
    part.ended = now_ns()
    part.operations = 1
    part.latencies.record(part.ended - part.begun)
    return part


def do_records(member, go, job):
    """All records of the job, or as many as are written within `sample_ns`: batches of gap records,
    and after each one record timed by itself. What is collected in a buffer, and a sync that is
    due, belong to the region."""
    part, work = Part(job), member.work
    append, clock, note, end = work.append, now_ns, part.stalls.note, work.records
    gaps, latencies = Gaps(work.gap_seed, job), Early(part.latencies, job.gap_measures)
    first = position = go["first_operation"]
    work.begin(go)
    part.begun = now = clock()
    deadline = now + go["sample_ns"]
    while position < end and now < deadline:
        gap, before = gaps.draw(), now
        count = min(gap, end - position)
        # A single record has a clock of its own before it too, so that its latency is nothing but
        # its own.
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
            if gaps.is_found() and latencies.early:
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
    part.checksum = work.checksum
    latencies.close()
    part.operations = position - first
    return part


def do_commits(member, go, job):
    """The same with a sync after each record. There are no gaps: each is timed."""
    part, work = Part(job), member.work
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
    """Latencies, of which the first are kept back until the mean gap is found; those while it grows
    are thrown away."""

    def __init__(self, histogram, gap_measures):
        self.most = 2 * gap_measures + 2
        self.histogram = histogram
        self.early = []
        self.record = self.keep

    def keep(self, took_ns):
        self.early.append(took_ns)
        if len(self.early) == self.most:
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

    def __init__(self, seed, job):
        self.shortest_ns, self.longest_ns, self.measures = job.gap_min_ns, job.gap_max_ns, job.gap_measures
        # State of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
        self.random = seed
        self.mean = 1
        # Measures in a row that did not double the mean.
        self.steady = 0

    def draw(self):
        """A number from 1 to twice the mean, exclusive."""
        self.random = self.random + 0x9E3779B97F4A7C15 & WORD_MASK
        value = (self.random ^ self.random >> 30) * 0xBF58476D1CE4E5B9 & WORD_MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & WORD_MASK
        return 1 + ((value ^ value >> 31) * (2 * self.mean - 1) >> 64)

    def adapt(self, gap, took_ns):
        """Makes the mean gap last as long as the job says. True while the mean grows from 1: what
        was timed until then was timed more often than what follows. Gaps shorter than the mean are
        no measure, since the clock is a part of what they take."""
        if gap < self.mean:
            return False
        mean_ns = pace(gap, took_ns, self.mean)
        if mean_ns < self.shortest_ns:
            self.mean *= 2
            begins = self.steady < self.measures
            if begins:
                self.steady = 0
            return begins
        if self.mean > 1 and mean_ns > self.longest_ns:
            self.mean //= 2
        self.steady = min(self.steady + 1, self.measures)
        return False

    def is_found(self):
        """True if the mean has stopped growing from 1."""
        return self.steady == self.measures
