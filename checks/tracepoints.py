"""Keeps the tracepoints of a watch open while tests run.

Whoever closes a tracepoint that nobody else has waits for all CPUs of the machine, some 40 ms, and
a watch of another program has 77 of them. Dozens of tests watch a program, so these waits are
minutes. They test nothing: with the tracepoints kept open, a watch ends at once. The calls of all
programs are a little slower then, so not where rates are measured.
"""

import ctypes
import platform
import re
import struct
from pathlib import Path

WATCH = Path(__file__).resolve().parent.parent / "crates" / "host" / "src" / "watch"
EVENTS = Path("/sys/kernel/tracing/events")
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
PERF_TYPE_TRACEPOINT, PERF_FLAG_FD_CLOEXEC, DISABLED = 2, 8, 1
# Of struct perf_event_attr what Linux 3.10 had already.
ATTRIBUTES_BYTES = 96


def names():
    """The tracepoints of a watch, by the code that asks for them."""
    calls = re.findall(r'^    \("(\w+)", ', (WATCH / "calls.rs").read_text(), re.MULTILINE)
    others = re.findall(r'tracepoint\("(\w+/\w+)"\)', (WATCH / "kinds.rs").read_text())
    return [f"syscalls/sys_{side}_{call}" for call in calls for side in ("enter", "exit")] + others


def keep():
    """Opens them for this process, which they record nothing of, until it ends; their number.
    Without the right to, none."""
    number, libc = PERF_EVENT_OPEN.get(platform.machine()), ctypes.CDLL(None, use_errno=True)
    kept = 0
    for name in names() if number else []:
        try:
            tracepoint = int((EVENTS / name / "id").read_text())
        except OSError:
            continue
        attributes = struct.pack("=IIQQQQQ", PERF_TYPE_TRACEPOINT, ATTRIBUTES_BYTES, tracepoint, 1, 0, 0, DISABLED)
        attributes = ctypes.create_string_buffer(attributes.ljust(ATTRIBUTES_BYTES, b"\0"))
        kept += libc.syscall(number, attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0
    return kept
