"""What the controller frees goes back to the system, where the C library would keep it.

By itself glibc gives each thread a heap of its own, in which what one thread made and another one frees leaves holes,
and takes ever larger pieces from these heaps once a large piece was freed. Under many clients that come and go the
process grows by a tenth in an hour, though it holds no more than before. The threads hold Python's lock while they
allocate, so one heap serves them all. On another C library nothing happens.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Options of mallopt(3)."""
_LARGE_BYTES = 128 << 10
"""glibc's own first values of both; to set them keeps them from growing."""


def keep_compact() -> None:
    """One heap for all threads that are started from now on, and what is large outside of it."""
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE_BYTES), (_TRIM_THRESHOLD, _LARGE_BYTES)):
            mallopt(option, value)


def give_back() -> None:
    """Free pages go back now, wherever they lie."""
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
