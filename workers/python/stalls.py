"""Stalls: batches that took longer than their operations should."""


class Stalls:
    """Batches that took longer by over stall_ns, and over twice as long, as their operations take
    on average. A stalled one counts in the average as what it should have taken, or one long stall
    would hide those after it."""

    def __init__(self, stall_ns):
        # Excess of a stalled batch over its operations' average.
        self.stall_ns = stall_ns
        self.count = self.longest_ns = 0
        # Operations without stalls, and their time.
        self.operations = self.took_ns = 0
        # The very first batch, until there is another to compare it with; alone it is no stall.
        self.first = None

    def note(self, operations, took_ns):
        if took_ns < self.stall_ns and self.operations > 0:
            self.operations += operations
            self.took_ns += took_ns
        elif self.operations > 0:
            self.compare(operations, took_ns)
        elif self.first is None:
            self.first = operations, took_ns
        else:
            # Of the first two the one with the faster operations is the measure of the other.
            calm, other = self.first, (operations, took_ns)
            if pace(*calm, 1) > pace(*other, 1):
                calm, other = other, calm
            self.operations, self.took_ns = calm
            self.compare(*other)

    def compare(self, operations, took_ns):
        due_ns = pace(self.operations, self.took_ns, operations)
        if took_ns > due_ns + max(due_ns, self.stall_ns):
            self.count += 1
            self.longest_ns = max(self.longest_ns, took_ns - pace(self.operations, self.took_ns, operations - 1))
            took_ns = due_ns
        self.operations += operations
        self.took_ns += took_ns


def pace(of, took_ns, operations):
    """Time of `operations` at the pace of others; by doubles, as in every language's worker."""
    return int(float(took_ns) * operations / of)
