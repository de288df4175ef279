"""The machine that a figure was taken on, as one line."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def describe() -> str:
    """CPU, cores, kernel, Python and Open vSwitch."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    switch = subprocess.run(["ovs-vsctl", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[
        0
    ]
    return (
        f"{os.cpu_count()} cores {cpu}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, {switch}, load {os.getloadavg()[0]:.1f}"
    )
