#!/usr/bin/env python3
"""Shortens a run file for the corpus: few cells, few buckets and windows, no empty fields, the
directory as /data, and no names of a machine.

    python3 shorten.py RUN [CELLS] > corpus/run-files/NAME.jsonl
"""

import json
import os
import sys

BUCKETS = 4
WINDOWS = 8


def check(text):
    """FNV-1a, 64 bits, as the run file has it."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def merged(ends, counts):
    """First, middle and last buckets; what lies between is counted in the middle one."""
    if len(ends) <= BUCKETS:
        return ends, counts
    kept = sorted({0, len(ends) // 2, len(ends) - 2, len(ends) - 1})
    fewer = [counts[index] for index in kept]
    fewer[1] += sum(counts) - sum(fewer)
    return [ends[index] for index in kept], fewer


def shorten(value):
    if isinstance(value, list):
        return [shorten(item) for item in value]
    if not isinstance(value, dict):
        return value
    value = {name: shorten(item) for name, item in value.items() if item is not None}
    for ends, counts in (("latency_ns", "latency_counts"), ("ns", "counts")):
        if ends in value and counts in value:
            value[ends], value[counts] = merged(value[ends], value[counts])
    for name, most in (("windows", WINDOWS), ("rates", 5)):
        if isinstance(value.get(name), list):
            value[name] = value[name][:most]
    return value


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        records = [json.loads(line)["record"] for line in file]
    cells = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    environment = records[0]["environment"]
    environment["kernel"] = environment["kernel"].split("-")[0]
    environment["mount_options"] = "rw,relatime"
    directory = records[0]["plan"]["source"].get("directory", "/data")
    # Where workers of other languages were built.
    cache = os.environ.get("XDG_CACHE_HOME")
    ids, samples, has_seconds = [], 0, False
    for record in records:
        if record["kind"] == "sample":
            if record["cell"] not in ids:
                ids.append(record["cell"])
            if ids.index(record["cell"]) >= cells:
                continue
            samples += 1
            if record["round"] > 0 and "evidence" in record["outcome"]:
                for name in ("host", "threads"):
                    record["outcome"]["evidence"].pop(name, None)
        if record["kind"] == "seconds":
            if has_seconds:
                continue
            has_seconds, record["seconds"] = True, record["seconds"][:2]
        if record["kind"] == "end":
            record["samples"] = samples
        text = json.dumps(shorten(record), separators=(",", ":"), ensure_ascii=False).replace(directory, "/data")
        text = text.replace(cache, "/home/me/.cache") if cache else text
        print(f'{{"check":"{check(text)}","record":{text}}}')


if __name__ == "__main__":
    main()
