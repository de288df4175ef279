"""Check that runs fit into the memory of this machine, before they start."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from blast_sim.base.wrong_input import InputError

MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int:
    """Return the memory that is available without swapping, or else the total memory."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) * 1024 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def runs_at_once(limit: int, needs: Sequence[int], available: int) -> int:
    """Return how many of the runs, at most `limit`, fit into memory at the same time in any combination.

    Raises InputError if a single run does not fit.
    """
    largest = sorted(needs, reverse=True)[:limit]
    if largest and largest[0] > available:
        raise InputError(
            f"a run needs {_shown(largest[0])} of memory, but {_shown(available)} are available: "
            "use fewer leaves or flows, or a larger machine"
        )
    while sum(largest) > available:
        largest.pop()
    return max(1, len(largest))


def _shown(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e7 else f"{size / 1e6:.2f} MB"
