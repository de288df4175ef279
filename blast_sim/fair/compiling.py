"""numba, where it is installed: the extra `fast`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import numpy as np

from blast_transport.base.extras import how_to_install

Solver = Literal["numba", "numpy"]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

at = np.uintp
"""An index in a loop that counts: for a signed one numba looks each time whether it is negative, as Python has it."""

VARIABLE = "BLAST_FAIR_SOLVER"


def _chosen() -> Solver:
    """Return the solver that the environment requests, or the fastest installed one."""
    requested = os.environ.get(VARIABLE, "")
    if requested not in ("", "numba", "numpy"):
        raise ValueError(f"{VARIABLE} must be numba or numpy, not {requested!r}")
    installed = find_spec("numba") is not None
    if requested == "numba" and not installed:
        raise ModuleNotFoundError(f"{VARIABLE} asks for numba, which is missing: {how_to_install('fast')}")
    return "numba" if installed and requested != "numpy" else "numpy"


SOLVER: Solver = _chosen()
"""Which solver is in use unless a call names one; the environment variable BLAST_FAIR_SOLVER chooses."""


def compiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Compile a function to machine code, cached in the user's cache folder (`$XDG_CACHE_HOME`, else ~/.cache).

    numba's default folder is beside the source, which may be read-only. Without a writable cache folder every process
    compiles again, which takes seconds. NUMBA_CACHE_DIR takes precedence.
    """
    return _compiled(function, fastmath=False)


def compiled_without_nan(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Compile a function that never meets a NaN, so that minima can be vectorized."""
    return _compiled(function, fastmath={"nnan", "nsz"})


def _compiled(function: Callable[Arguments, Result], fastmath: bool | set[str]) -> Callable[Arguments, Result]:
    from numba import config, njit

    settings: dict[str, object] = {"error_model": "numpy", "nogil": True, "fastmath": fastmath}
    chosen = config.CACHE_DIR
    folder = chosen or _cache_folder()
    if not folder:
        uncached: Callable[Arguments, Result] = njit(**settings)(function)
        return uncached
    config.CACHE_DIR = folder
    try:
        kept: Callable[Arguments, Result] = njit(cache=True, **settings)(function)
    finally:
        config.CACHE_DIR = chosen
    return kept


@cache
def _cache_folder() -> str:
    """Where compiled code is kept; empty where nothing can be."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "blast" / "compiled" / _digest()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


def _digest() -> str:
    """Return a digest of the sources: numba recompiles a function when its own file changes, but not when its callees
    change.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
