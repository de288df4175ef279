"""numba, where it is installed: the extra `fast`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, ParamSpec, TypeVar

Solver = Literal["numba", "numpy"]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

VARIABLE = "BLAST_FAIR_SOLVER"


def _chosen() -> Solver:
    """What the environment asks for, else the fastest that is installed."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "numba", "numpy"):
        raise ValueError(f"{VARIABLE} must be numba or numpy, not {wanted!r}")
    installed = find_spec("numba") is not None
    if wanted == "numba" and not installed:
        raise ModuleNotFoundError(f"{VARIABLE} asks for numba, which is missing: pip install 'blast-controller[fast]'")
    return "numba" if installed and wanted != "numpy" else "numpy"


SOLVER: Solver = _chosen()
"""Which solver is in use unless a call names one; the environment variable BLAST_FAIR_SOLVER chooses."""


def compiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function as machine code. The compiled code is kept where Python keeps its own, in `__pycache__`.

    Where that cannot be written, numba takes its folder in the user's cache; where that cannot be written either, or
    Python was told to write no byte code, every process compiles anew.
    """
    from numba import njit

    settings: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    if sys.dont_write_bytecode:
        return _typed(njit(**settings)(function))
    try:
        return _typed(njit(cache=True, **settings)(function))
    except RuntimeError:
        # numba has found no folder that it can write to.
        return _typed(njit(**settings)(function))


def _typed(function: Any) -> Callable[..., Any]:
    result: Callable[..., Any] = function
    return result
