"""Histograms of durations, as the conversation carries them."""


class Histogram:
    """Counts of nanoseconds. Below 256 each value has a bucket of its own; from there on 128
    buckets share a power of two, so that none is wider than 1/128 of its value. Values beyond the
    last bucket, 137 s, count there."""

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
