"""Compares what the worker makes of ../vectors.json, its argument, with what it must. It writes no records, and draws no gaps."""

import json
import sys

from histogram import Histogram
from stalls import Stalls


def reproduced(vector):
    if vector["type"] == "stalls":
        stalls = Stalls()
        for operations, took_ns in zip(vector["operations"], vector["took_ns"]):
            stalls.note(operations, took_ns)
        return (stalls.count, stalls.longest_ns) == (vector["stalls"], vector["stall_longest_ns"])
    if vector["type"] == "latencies":
        latencies = Histogram()
        for took_ns in vector["took_ns"]:
            latencies.record(took_ns)
        return latencies.recorded() == (vector["latency_ns"], vector["latency_counts"])
    return vector["type"] == "gaps"


with open(sys.argv[1]) as vectors:
    for entry in json.load(vectors):
        if not reproduced(entry):
            sys.exit("the worker does not reproduce %r" % entry)
