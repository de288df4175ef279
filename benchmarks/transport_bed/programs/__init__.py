"""Small programs of our own that run on the hosts of a bed, and how they are compiled."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
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
_EXAMPLES = ("verifying",)
"""Those in Rust, which blast_carrier/engine/Cargo.toml names."""
_EXAMPLE = ("build", "--quiet", "--release", "-p", "blast_engine", "--example")
_CHECKOUT = HERE.parents[2]


def compile_into(folder: Path, program: str) -> Path:
    """Compile one program; where it is. Raises CannotRun."""
    compiled = folder / program
    if program in _EXAMPLES:
        _compile(program, [str(_CHECKOUT / "scripts" / "cargo"), *_EXAMPLE, program])
        shutil.copy(_CHECKOUT / "target" / "release" / "examples" / program, compiled)
    else:
        _compile(program, [*_HOW[program], "-O2", "-Wall", "-o", str(compiled), str(HERE / f"{program}.c")])
    return compiled


def _compile(program: str, command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CannotRun(f"{command[0]} is not installed: apt-get install gcc libc6-dev libopenmpi-dev") from None
    if done.returncode:
        raise CannotRun(f"{program} does not compile: {done.stderr.strip()}")
