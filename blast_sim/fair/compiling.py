"""numba, where it is installed: the extra `fast`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

at = np.uintp
"""An index in a loop that counts: for a signed one numba looks each time whether it is negative, as Python has it."""


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
    """Return the folder for compiled code, or an empty text if it cannot be written."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "blast" / "compiled" / _digest()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


def _digest() -> str:
    """Return a digest of the sources.

    Numba recompiles a function when its own file changes, but not when its callees change.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
