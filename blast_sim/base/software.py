"""The software that results come from: the program's own text, the libraries that calculate for it, the solver."""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from blast_sim.base.wrong_input import InputError

CODE = ("blast_sim", "algorithms", "blast_controller.core", "blast_controller.configuration")
"""The packages that results come from."""

LIBRARIES = ("highspy", "llvmlite", "networkx", "numba", "numpy", "pulp")
"""The libraries that results depend on, where they are installed."""

SUFFIXES = frozenset({".py", ".toml", ".json", ".txt"})
"""Of files that results depend on: recorded computation and replication are data beside the code."""

GIT_SECONDS = 10.0
"""A repository on a slow file system may not delay a simulation longer."""


class OtherSoftwareError(InputError):
    """A worker would compute a result with other software than the result is recorded for."""


@dataclass(frozen=True, slots=True)
class Software:
    """The software that computes results.

    Attributes
    ----------
    code : str
        SHA-256 of the program's own text, from `code_version`.
    solver : str
        The solver of max-min fair rates: numba or numpy.
    versions : tuple of (str, str)
        Python and the libraries of `LIBRARIES` with their versions.
    """

    code: str
    solver: str
    versions: tuple[tuple[str, str], ...]

    def require_here(self) -> None:
        """Raise OtherSoftwareError if this process computes with other software."""
        here = software()
        if here == self:
            return
        pairs = {"the code": (self.code[:12], here.code[:12]), "the solver": (self.solver, here.solver)}
        ours, theirs = dict(self.versions), dict(here.versions)
        pairs |= {name: (ours.get(name, "none"), theirs.get(name, "none")) for name in {**ours, **theirs}}
        differing = ", ".join(f"{name} is {b} and not {a}" for name, (a, b) in pairs.items() if a != b)
        raise OtherSoftwareError(
            f"the software of this worker is not that of the command ({differing}): install the same on both"
        )


@dataclass(frozen=True, slots=True)
class Checkout:
    """The commit of the checkout that the program runs from; `modified` if files that Git tracks differ from it."""

    commit: str
    modified: bool


@cache
def software() -> Software:
    """Return the software of this process."""
    # Chosen when the module is loaded: a rerun sets the choice before that.
    from blast_sim.base.fair_solver import SOLVER

    versions = {"python": platform.python_version(), **{name: installed_version(name) for name in LIBRARIES}}
    return Software(code_version(), SOLVER, tuple((name, found) for name, found in versions.items() if found))


@cache
def code_version() -> str:
    """Return the SHA-256 of the program's own text, so that no result of an earlier version is taken for its own."""
    digest = hashlib.sha256()
    for package in CODE:
        for folder in map(Path, importlib.import_module(package).__path__):
            for path in sorted(folder.rglob("*")):
                if path.suffix in SUFFIXES and path.is_file():
                    digest.update(f"{path.relative_to(folder)}\0".encode())
                    digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def checkout() -> Checkout | None:
    """Return the commit that the program runs from; None for an installation."""
    here = Path(__file__).with_name("__init__.py")
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return None
    # Commit and changes in one run of Git, which takes as long as the rest of a small result.
    status = _git(here.parent, "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "--untracked-files=no")
    if status is None:
        return None
    head, *others = status.splitlines()
    commit = head.removeprefix("# branch.oid ")
    return None if commit == "(initial)" else Checkout(commit, any(not line.startswith("#") for line in others))


def _git(folder: Path, *words: str) -> str | None:
    """Return the output of Git, or None if it fails or is not installed."""
    try:
        ran = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=True,
            # To read the state of a checkout must not write to it.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stdout.strip()


def installed_version(distribution: str) -> str | None:
    """Return the version of a distribution; None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
