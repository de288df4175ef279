"""Return of freed memory to the system, which the C library would otherwise keep.

By default glibc gives each thread a heap, in which memory allocated by one thread and freed by another leaves holes,
and takes ever larger blocks from these heaps once a large block was freed. With many short-lived clients the process
grows by a tenth in an hour at constant load. The threads hold Python's lock while they allocate, so one heap serves
them all. No effect with another C library.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Options of mallopt(3)."""
_LARGE_BYTES = 128 << 10
"""glibc's own first values of both; to set them keeps them from growing."""


def keep_compact() -> None:
    """Use one heap for all threads started from now on, and allocate large blocks outside of it."""
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE_BYTES), (_TRIM_THRESHOLD, _LARGE_BYTES)):
            mallopt(option, value)


def give_back() -> None:
    """Return free pages to the system."""
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
