"""The machine that a figure was taken on, as one line."""

from __future__ import annotations

import os
import platform

from blast_sim.base.provenance import processor


def describe(*more: str) -> str:
    """Return CPU, cores, kernel, Python, further values, and the machine's load."""
    parts = [
        f"{os.cpu_count()} cores {processor()}",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
        *more,
        f"load {os.getloadavg()[0]:.1f}",
    ]
    return ", ".join(parts)
