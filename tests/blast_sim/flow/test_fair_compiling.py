"""The cache of compiled code, and the solver without numba."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# One compiled function is enough: the smallest.
COMPILE = """
import numpy as np
from blast_sim.fair.changes import take
from blast_sim.fair.demands import Demands
from blast_sim.fair.flow_table import Columns
from blast_sim.fair.paths import Paths
from blast_sim.fair.sweep import Work
take(Columns.of(Paths.none(), Demands.of(0)), Work.of(np.ones(1), 0, 0), np.zeros(0, np.int64))
print(len(take.stats.cache_hits))
"""
WITHOUT = """
import sys
sys.modules["numba"] = None
from importlib import util
found = util.find_spec
util.find_spec = lambda name, *rest: None if name == "numba" else found(name, *rest)
from blast_sim.fair import SOLVER, FairShares, Paths, fair_rates, finish_times
shares = FairShares([6.0])
print(SOLVER, fair_rates([6.0], Paths.rows([[0], [0]])), shares.rates(shares.add(Paths.rows([[0]]))),
      finish_times([6.0], Paths.rows([[0]]), 12.0))
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "BLAST_FAIR_SOLVER")}
    return subprocess.run(
        [sys.executable, "-c", code], env={**kept, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.numba
def test_compiled_code_is_cached_in_the_cache_directory_of_the_user(tmp_path: Path) -> None:
    assert run(COMPILE, XDG_CACHE_HOME=str(tmp_path)).stdout == "0\n"
    assert list((tmp_path / "blast" / "compiled").rglob("*.nbc"))
    assert run(COMPILE, XDG_CACHE_HOME=str(tmp_path)).stdout == "1\n"
    run(COMPILE, NUMBA_CACHE_DIR=str(tmp_path / "own"), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert list((tmp_path / "own").rglob("*.nbc")) and not (tmp_path / "cache").exists()


@pytest.mark.numba
def test_solver_compiles_without_a_writable_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run(COMPILE, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert (result.stdout, result.stderr) == ("0\n", "")
    import blast_sim.fair

    assert not list(Path(blast_sim.fair.__file__).parent.rglob("*.nbc"))


def test_solver_falls_back_to_numpy_without_numba() -> None:
    result = run(WITHOUT)
    assert result.stdout == "numpy [3. 3.] [6.] [2.]\n", result.stderr


def test_environment_variable_selects_the_solver() -> None:
    show = "from blast_sim.fair import SOLVER; print(SOLVER)"
    assert run(show, BLAST_FAIR_SOLVER="numpy").stdout == "numpy\n"
    assert "must be numba or numpy" in run(show, BLAST_FAIR_SOLVER="fortran").stderr
