"""Traces of `pagewise record`, as the scripts beside this one read them."""

import json
import mmap


def trailer(path):
    """The line of a trace that says what was recorded; one with its digest follows."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        begin = content.rfind(b'T{"accesses"') + 1
        return json.loads(content[begin:].split(b"\n")[0])
