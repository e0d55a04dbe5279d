"""Heartbeats."""

import threading
import time

from histogram import Histogram

now_ns = time.monotonic_ns


class Heartbeat:
    """A thread that does nothing but sleep, and notes how late it is woken: what a method does to
    every other thread under the interpreter's lock. A beat counts with what it was late by within
    the region."""

    def __init__(self, interval_ns):
        self.interval_ns = interval_ns
        self.lock = threading.Lock()
        self.delays = Histogram()
        # Begin of the region; None: beats do not count.
        self.since_ns = None
        self.due_ns = now_ns() + interval_ns
        self.stopped = False
        threading.Thread(target=self.beat, daemon=True).start()

    def beat(self):
        while not self.stopped:
            time.sleep(self.interval_ns / 1e9)
            with self.lock:
                self.note(now_ns())
                self.due_ns = now_ns() + self.interval_ns

    def note(self, at_ns):
        """Counts a beat that is due or late."""
        if self.since_ns is not None and at_ns >= max(self.due_ns, self.since_ns):
            self.delays.record(max(at_ns - max(self.due_ns, self.since_ns), 1))

    def begin(self):
        """From now on beats count."""
        with self.lock:
            self.delays = Histogram()
            self.since_ns = now_ns()

    def end(self):
        """They count no more. One that is still late counts with what it is late by."""
        with self.lock:
            at_ns = now_ns()
            if at_ns > self.due_ns:
                self.note(at_ns)
            self.since_ns = None
            ends, counts = self.delays.recorded()
        return {
            "heartbeat_kinds": "thread",
            "heartbeat_buckets": [len(ends)],
            "heartbeat_ns": ends,
            "heartbeat_counts": counts,
        }

    def stop(self):
        """Has the thread end at its next beat."""
        self.stopped = True


class NoHeartbeat:
    """In place of a heartbeat where the job asks for none."""

    def begin(self):
        pass

    def end(self):
        return {}

    def stop(self):
        pass
