"""Small programs of our own that run on the hosts of a bed, and how they are compiled."""

from __future__ import annotations

import subprocess
from pathlib import Path

from transport_bed.failures import CannotRun

HERE = Path(__file__).resolve().parent
_COMPILERS = {"floor": "cc", "naive_tcp": "cc", "mpi_broadcast": "mpicc"}


def compile_into(folder: Path, program: str) -> None:
    """Compile one program. Raises CannotRun."""
    compiler = _COMPILERS[program]
    command = [compiler, "-O2", "-Wall", "-o", str(folder / program), str(HERE / f"{program}.c")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CannotRun(f"{compiler} is not installed: apt-get install gcc libc6-dev libopenmpi-dev") from None
    if done.returncode:
        raise CannotRun(f"{program} does not compile: {done.stderr.strip()}")
