"""The choice of the solver of max-min fair rates. Imports neither solver: a result's provenance only names it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Literal

from blast_base.extras import how_to_install

Solver = Literal["numba", "numpy"]

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
"""The solver in use unless a call names one; the environment variable BLAST_FAIR_SOLVER chooses it."""
