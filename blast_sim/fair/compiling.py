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
    """What the environment asks for, else the fastest that is installed."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "numba", "numpy"):
        raise ValueError(f"{VARIABLE} must be numba or numpy, not {wanted!r}")
    installed = find_spec("numba") is not None
    if wanted == "numba" and not installed:
        raise ModuleNotFoundError(f"{VARIABLE} asks for numba, which is missing: {how_to_install('fast')}")
    return "numba" if installed and wanted != "numpy" else "numpy"


SOLVER: Solver = _chosen()
"""Which solver is in use unless a call names one; the environment variable BLAST_FAIR_SOLVER chooses."""


def compiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function as machine code, which is kept in the user's cache folder (`$XDG_CACHE_HOME`, else ~/.cache).

    numba's own choice would be beside the source, which is not ours to write to. Where the folder cannot be written
    every process compiles anew, which takes seconds. Who has set NUMBA_CACHE_DIR is obeyed.
    """
    return _compiled(function, fastmath=False)


def compiled_without_nan(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The same of a function that never meets a NaN, so that minima may be found side by side."""
    return _compiled(function, fastmath={"nnan", "nsz"})


def _compiled(function: Callable[Arguments, Result], fastmath: bool | set[str]) -> Callable[Arguments, Result]:
    from numba import config, njit

    settings: dict[str, object] = {"error_model": "numpy", "nogil": True, "fastmath": fastmath}
    chosen = config.CACHE_DIR
    folder = chosen or _cache_folder()
    if not folder:
        anew: Callable[Arguments, Result] = njit(**settings)(function)
        return anew
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
    """Names the sources: numba compiles a function anew when its own file has changed, but not those that it calls."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
