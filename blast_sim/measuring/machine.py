"""The machine that a figure was taken on, as one line."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe(*more: str) -> str:
    """CPU, cores, kernel, Python, what else is told, and what the machine does beside."""
    parts = [
        f"{os.cpu_count()} cores {_processor()}",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
        *more,
        f"load {os.getloadavg()[0]:.1f}",
    ]
    return ", ".join(parts)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if "model name" in line)
    return next(models, platform.machine())
