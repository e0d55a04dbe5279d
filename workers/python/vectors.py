"""Compares what the worker makes of ../vectors.json, its argument, with what it must."""

import json
import sys
from types import SimpleNamespace

from amount import Gaps
from histogram import Histogram
from stalls import Stalls


def reproduced(vector):
    if vector["type"] == "stalls":
        stalls = Stalls(vector["stall_ns"])
        for operations, took_ns in zip(vector["operations"], vector["took_ns"]):
            stalls.note(operations, took_ns)
        return (stalls.count, stalls.longest_ns) == (vector["stalls"], vector["stall_longest_ns"])
    if vector["type"] == "latencies":
        latencies = Histogram()
        for took_ns in vector["took_ns"]:
            latencies.record(took_ns)
        return latencies.recorded() == (vector["latency_ns"], vector["latency_counts"])
    if vector["type"] == "gaps":
        gaps, drawn, grows = Gaps(vector["seed"], SimpleNamespace(**vector)), [], []
        for op_ns in vector["op_ns"]:
            drawn.append(gaps.draw())
            grows.append(int(gaps.adapt(drawn[-1], drawn[-1] * op_ns)))
        return (drawn, grows) == (vector["gaps"], vector["grows"])
    return False


with open(sys.argv[1]) as vectors:
    for entry in json.load(vectors):
        if not reproduced(entry):
            sys.exit("the worker does not reproduce %r" % entry)
