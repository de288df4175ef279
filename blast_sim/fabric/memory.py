"""Whether runs fit into the memory of this machine, said before they start and not when they are in the middle."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from blast_sim.base.wrong_input import WrongInput

MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int:
    """What programs may take now without swapping; where that is not told, all that the machine has."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) * 1024 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def runs_at_once(most: int, needs: Sequence[int], available: int) -> int:
    """How many of the runs, `most` at the most, have room beside each other, whichever they are.

    Raises WrongInput if one of them has none alone.
    """
    largest = sorted(needs, reverse=True)[:most]
    if largest and largest[0] > available:
        raise WrongInput(
            f"a run needs {_shown(largest[0])} of memory, and {_shown(available)} are available: "
            "take fewer leaves or flows, or a larger machine"
        )
    while sum(largest) > available:
        largest.pop()
    return max(1, len(largest))


def _shown(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e7 else f"{size / 1e6:.2f} MB"
