"""The Python worker of pagewise: reads and writes a file in the ways that Python programs do, as
../PROTOCOL.md (version 1) says.

Python 3.8 or newer on Linux, the standard library alone; numpy for `numpy-memmap`, imported when a
job asks for it.

    mmap            a slice of an mmap.mmap, which is a new bytes object: one copy, as programs do
                    it. Copying on into a buffer that is kept would be a second one. random:
                    MADV_RANDOM of the whole span. Records are assigned to slices
    pread           os.preadv into a buffer of the thread
    readinto        seek and readinto of a raw file (io.FileIO) into a buffer of the thread; a scan
                    seeks once
    numpy-memmap    a slice of a numpy.memmap, assigned to an array of the thread
    write, pwrite   os.write and os.pwrite, a call for each record; with buffer=SIZE one for each
                    buffer of whole records. Between updates pwrite reads like pread
    buffered-writer an io.BufferedWriter over the file, which writes its buffer when the next record
                    does not fit

A scan goes by pieces of 64 KiB. Which of them there are for which workload stands in OFFERS.

Threads are those of `threading`, under the interpreter's lock. A page fault in a slice of an mmap
keeps that lock; a read call gives it away, and so does numpy while it copies.

What is done with the bytes: `touch` unpacks the words of a read with one struct, `sum` adds a
memoryview of words (numpy's sum for numpy-memmap), `lines` is `count` of a newline. Sums are taken
modulo 2^64 once a batch.

A failed call is reported as `failed`. Any other exception is a defect: stack trace on stderr,
status 1. Times are nanoseconds of the monotonic clock, sizes bytes, words little-endian. An access
to a mapping whose file has become shorter ends the process by SIGBUS, which Python cannot catch;
where it happened is then on stderr.
"""

import faulthandler
import json
import os
import sys
import time

# Its other files, by the path by which it was started: another folder may have the name of this one
# by now.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from threads import JobThreads
from failures import Failure
from heartbeat import Heartbeat, NoHeartbeat
from offers import WORKLOADS, methods
from sources import interpreter
from tasks import Task

PROTOCOL_VERSION = 1
WORKER_VERSION = "1.0"

now_ns = time.monotonic_ns


class Talk:
    """The two ends of the conversation. Its stdout is a descriptor of its own; descriptor 1 and
    sys.stdout lead to stderr, so that nothing else in the process can say anything to pagewise."""

    def __init__(self):
        self.replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self.requests = sys.stdin.buffer

    def next(self):
        """The next request; None at the end of stdin."""
        line = self.requests.readline()
        return json.loads(line) if line else None

    def say(self, kind, **fields):
        """Sends a line."""
        self.replies.write(json.dumps({"type": kind, **fields}, separators=(",", ":")) + "\n")
        self.replies.flush()


def main():
    if sys.byteorder != "little":
        sys.exit("python worker: words are little-endian, and this machine's are not")
    faulthandler.enable()
    talk = Talk()
    talk.say(
        "hello",
        protocol=PROTOCOL_VERSION,
        worker="python",
        version="%s %s" % (WORKER_VERSION, interpreter()),
        worker_warmup=0,
        sync_calls="fdatasync,fsync,msync,O_DSYNC,RWF_DSYNC",
        commit_threads=1,
        **{workload: ",".join(methods(workload)) for workload in WORKLOADS},
    )
    while True:
        request = talk.next()
        if request is None:
            return
        if request["type"] != "open":
            sys.exit("python worker: %r came where a job is to be opened" % request["type"])
        try:
            serve(talk, Job(request))
        except Failure as failure:
            talk.say("failed", **failure.fields)
            return


class Job:
    """The fields of `open`, by the names of ../PROTOCOL.md."""

    def __init__(self, fields):
        self.__dict__.update(fields)


def serve(talk, job):
    """Does one job, from `open` to `closed`."""
    started = now_ns()
    task = Task(job)
    threads = JobThreads(job, task)
    talk.say("opened", setup_ns=now_ns() - started)
    started = now_ns()
    if job.warm_page_tables == 1:
        threads.order_all(lambda member: member.work.warm())
    heartbeat = Heartbeat(job.heartbeat_ns) if job.heartbeat_ns > 0 else NoHeartbeat()
    talk.say("ready", warmup_ns=now_ns() - started)
    while True:
        request = talk.next()
        if request is None:
            sys.exit(0)
        if request["type"] == "idle":
            heartbeat.begin()
            time.sleep(request["idle_ns"] / 1e9)
            talk.say("idled", **heartbeat.end())
        elif request["type"] == "go":
            heartbeat.begin()
            sample = threads.sample(request)
            talk.say("sample", **sample, **heartbeat.end())
        elif request["type"] == "verify":
            threads.hand_over(request["offsets"])
            talk.say("verified", reads=len(request["offsets"]))
        elif request["type"] == "close":
            started = now_ns()
            sync_ns = threads.end()
            task.close()
            heartbeat.stop()
            talk.say("closed", teardown_ns=now_ns() - started, sync_ns=sync_ns)
            return
        else:
            sys.exit("python worker: %r came within a job" % request["type"])


if __name__ == "__main__":
    main()
