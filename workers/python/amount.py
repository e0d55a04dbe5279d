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
    first, end = go["first_operation"], work.records
    gaps, course = Gaps(work.gap_seed), Course(part, work, first, end)
    part.begun = clock = now_ns()
    deadline = clock + go["sample_ns"]
    while course.position < end and clock < deadline:
        gap, begun = gaps.draw(), clock
        clock = course.stretch(gap, clock)
        if course.position < end and gaps.adapt(gap, clock - begun):
            course.early.clear()
        if gaps.steady == STEADY_MEASURES and course.early:
            course.record_early()
        if course.position < end:
            clock = course.stretch(1, clock)
    work.finish()
    part.ended = now_ns()
    course.record_early()
    part.operations = course.position - first
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


class Course:
    """How far an amount of work has come."""

    # So many latencies are kept back before the mean gap is found; those while it grows are thrown away.
    EARLY = 2 * STEADY_MEASURES + 2

    def __init__(self, part, work, position, end):
        self.work = work
        self.position = position
        self.end = end
        self.record = part.latencies.record
        self.note = part.stalls.note
        self.early = []
        self.early_closed = False

    def stretch(self, wanted, before):
        """Writes `wanted` records, fewer at the end, and returns the clock behind them. A single one has a clock of its own
        before it too, so that its latency is nothing but its own."""
        count = min(wanted, self.end - self.position)
        begun = now_ns() if wanted == 1 else before
        self.work.append(self.position, count)
        after = now_ns()
        self.position += count
        if wanted == 1:
            if self.early_closed or len(self.early) == self.EARLY:
                self.record(after - begun)
            else:
                self.early.append(after - begun)
        self.note(count, after - before)
        return after

    def record_early(self):
        for took in self.early:
            self.record(took)
        self.early.clear()
        self.early_closed = True


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
