"""Freed memory returns to the system; each test runs in its own process, because the allocator keeps its settings."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc, whose heaps this is about"
)

HEAPS = """
import ctypes, sys, threading
from blast_controller.process.heap import keep_compact

if sys.argv[1] == "compact":
    keep_compact()
barrier, kept = threading.Barrier(9), []

def allocate():
    kept.append([bytearray(10_000) for _ in range(10)])
    barrier.wait(30)
    barrier.wait(30)

for _ in range(8):
    threading.Thread(target=allocate).start()
barrier.wait(30)
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
libc.fflush(None)
barrier.wait(30)
"""

HOLES = """
from pathlib import Path
from blast_controller.process.heap import give_back, keep_compact

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

keep_compact()
small = resident()
pieces = [bytearray(10_000) for _ in range(5_000)]
last = bytearray(10_000)
large = resident()
del pieces
before = resident()
give_back()
print(small, large, before, resident())
"""


def output_of(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_threads_share_one_heap() -> None:
    assert output_of(HEAPS, "compact").count("<heap nr=") == 1
    assert output_of(HEAPS, "as it is").count("<heap nr=") > 1


def test_free_memory_between_used_blocks_returns_to_the_system() -> None:
    small, large, _, after = map(int, output_of(HOLES).split())
    assert large - small > 45_000_000
    assert after - small < 5_000_000
