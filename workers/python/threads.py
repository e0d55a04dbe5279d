"""Threads: alive from `open` to `close`."""

import io
import os
import queue
import threading

from failures import failed_call, short_call
from histogram import Histogram
from loops import WORD_MASK
from samples import Budget, Part, latency, now_ns, throughput


class Member:
    """A thread that waits for orders: functions of itself, whose result or exception is the
    answer."""

    def __init__(self, work):
        self.work = work
        self.orders = queue.SimpleQueue()
        self.answers = queue.SimpleQueue()
        # A daemon, so that a failure ends the process while others wait.
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            order = self.orders.get()
            if order is None:
                return
            try:
                answer = (order(self), None)
            except BaseException as error:
                answer = (None, error)
            # Kept no longer, since they may hold what `close` is to release.
            del order
            self.answers.put(answer)
            del answer

    def answer(self):
        result, error = self.answers.get()
        if error is not None:
            raise error
        return result


class JobThreads:
    """The threads of a job."""

    def __init__(self, job, task):
        self.job = job
        self.amount = task.amount
        self.rendezvous = threading.Barrier(len(task.works))
        self.batched = False
        self.members = [Member(work) for work in task.works]

    def order_all(self, order):
        """Has all threads do something. Of several failures the first is raised, when all have
        answered."""
        for member in self.members:
            member.orders.put(order)
        answers = [member.answers.get() for member in self.members]
        for _, error in answers:
            if error is not None:
                raise error
        return [result for result, _ in answers]

    def sample(self, go):
        """Has every thread do its part, and adds up what they did."""
        self.batched = False
        perform = self.amount or self.read_for
        parts = self.order_all(lambda member: perform(member, go, self.job))
        timed = [part for part in parts if part.latency_operations > 0]
        latencies = Histogram()
        for part in parts:
            latencies.add(part.latencies)
        latency_ns, latency_counts = latencies.recorded()
        done = [part.operations + part.latency_operations for part in parts]
        elapsed = max(part.latency_ended for part in timed) - min(part.latency_begun for part in timed) if timed else 0
        syncs = self.members[0].work.syncs
        sync_ns, sync_counts = syncs.recorded() if syncs else ([], [])
        return {
            "operations": sum(part.operations for part in parts),
            "elapsed_ns": max(part.ended for part in parts) - min(part.begun for part in parts),
            "latency_operations": sum(part.latency_operations for part in parts),
            "latency_elapsed_ns": elapsed,
            "thread_operations": done,
            "bytes": sum(count * member.work.op_bytes for count, member in zip(done, self.members)),
            "checksum": "%016x" % (sum(part.checksum for part in parts) & WORD_MASK),
            "latency_ns": latency_ns,
            "latency_counts": latency_counts,
            "sync_duration_ns": sync_ns,
            "sync_duration_counts": sync_counts,
            "stalls": sum(part.stalls.count for part in parts),
            "stall_longest_ns": max(part.stalls.longest_ns for part in parts),
        }

    def read_for(self, member, go, job):
        """One thread's part of a sample of reads. All threads are in the same phase."""
        part = Part(job)
        budget = Budget.of(job.throughput_device_bytes, job)
        member.work.begin(go)
        self.rendezvous.wait()
        try:
            if throughput(member.work, part, go, job, budget):
                self.batched = True
        finally:
            # A thread that failed still comes to where the others wait for it.
            self.rendezvous.wait()
        if self.batched and go["latency_ns"] > 0:
            part.latencies = Histogram()
            latency(member.work, part, go, job, Budget.of(job.latency_device_bytes, job))
        return part

    def hand_over(self, offsets):
        """Has the first thread do single reads and puts their bytes into the hand-over memory."""
        path, read_bytes = self.job.handover_path, self.job.read_bytes

        def fetch(member):
            try:
                with io.FileIO(path, "r+") as handover:
                    for index, offset in enumerate(offsets):
                        written = os.pwrite(handover.fileno(), member.work.fetch(offset), index * read_bytes)
                        if written != read_bytes:
                            raise short_call("pwrite", path, index * read_bytes, read_bytes, written)
            except OSError as error:
                raise failed_call("pwrite", path, error) from error

        self.members[0].orders.put(fetch)
        self.members[0].answer()

    def end(self):
        """Syncs if the job says so, and ends the threads. Returns what the sync took."""
        sync_ns = 0
        if self.job.sync == "end":
            started = now_ns()
            self.order_all(lambda member: member.work.sync())
            sync_ns = now_ns() - started
        for member in self.members:
            member.orders.put(None)
        for member in self.members:
            member.thread.join()
            member.work = None
        return sync_ns
