"""Small programs that run on the hosts of a bed, and their compilation."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.transfers.bed.failures import PrerequisiteError

HERE = Path(__file__).resolve().parent
_PLAIN, _SHARED = ("cc",), ("cc", "-shared", "-fPIC")
_HOW = {"mpi_broadcast": ("mpicc",), "lossy": _SHARED, "slow_store": _SHARED}
"""The compiler and its options, if not `_PLAIN`."""
_CRATES = ("verifying",)
"""Those in Rust, which are crates of the workspace."""
_BUILD = ("build", "--quiet", "--release", "-p")
_CHECKOUT = HERE.parents[3]


def compile_into(folder: Path, program: str) -> Path:
    """Compile a program and return its path. Raises PrerequisiteError."""
    compiled = folder / program
    if program in _CRATES:
        _compile(program, [str(_CHECKOUT / "scripts" / "cargo"), *_BUILD, program])
        shutil.copy(_CHECKOUT / "target" / "release" / program, compiled)
    else:
        _compile(program, [*_HOW.get(program, _PLAIN), "-O2", "-Wall", "-o", str(compiled), str(HERE / f"{program}.c")])
    return compiled


def _compile(program: str, command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise PrerequisiteError(
            f"{command[0]} is not installed: apt-get install gcc libc6-dev libopenmpi-dev"
        ) from None
    if done.returncode:
        raise PrerequisiteError(f"{program} does not compile: {done.stderr.strip()}")
