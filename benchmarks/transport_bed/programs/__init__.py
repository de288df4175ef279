"""Small programs of our own that run on the hosts of a bed, and how they are compiled."""

from __future__ import annotations

import subprocess
from pathlib import Path

from transport_bed.failures import CannotRun

HERE = Path(__file__).resolve().parent
_HOW = {
    "floor": ("cc",),
    "naive_tcp": ("cc",),
    "mpi_broadcast": ("mpicc",),
    "rsh": ("cc",),
    "lossy": ("cc", "-shared", "-fPIC"),
    "slow_store": ("cc", "-shared", "-fPIC"),
}


def compile_into(folder: Path, program: str) -> Path:
    """Compile one program; where it is. Raises CannotRun."""
    compiled = folder / program
    command = [*_HOW[program], "-O2", "-Wall", "-o", str(compiled), str(HERE / f"{program}.c")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CannotRun(f"{command[0]} is not installed: apt-get install gcc libc6-dev libopenmpi-dev") from None
    if done.returncode:
        raise CannotRun(f"{program} does not compile: {done.stderr.strip()}")
    return compiled
