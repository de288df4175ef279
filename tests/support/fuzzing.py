"""How much the fuzz tests try: a little in every run of the tests, a lot under `make fuzz`."""

from __future__ import annotations

import os


def inputs(usual: int) -> int:
    """How many inputs a decoder gets: `usual`, or what BLAST_FUZZ_INPUTS says."""
    return int(os.environ.get("BLAST_FUZZ_INPUTS") or usual)
