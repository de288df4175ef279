"""A digest of the source that a plug-in consists of, so that results belong to it and not only to its name.

It covers the plug-in's top-level package (or its single file), the other packages of its distribution, and whatever
modules these import that are no part of Python, of Blast or of another installed distribution; of an installed
distribution the version counts. Data files that a plug-in reads are not covered.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import pickle
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import packages_distributions, version
from pathlib import Path

from blast_sim.base.wrong_input import InputError

BLAST = frozenset(
    {
        "algorithms",
        "blast_api",
        "blast_base",
        "blast_client",
        "blast_controller",
        "blast_sim",
        "blast_transport",
        "optical_switch",
        "tl1_driver",
    }
)
"""The program's own packages, which `software.code_version` covers."""

SUFFIXES = (".py", *EXTENSION_SUFFIXES)
INSTALLED = frozenset({"site-packages", "dist-packages"})
MAIN = "__main__"
_DIGESTS: dict[tuple[type, str], str] = {}


class NoSourceError(InputError):
    """The source of a plug-in is in no file, or its state cannot be pickled."""


@dataclass(slots=True)
class _Covered:
    files: dict[str, Path] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def source_digest(module: str) -> str:
    """Return the SHA-256 of the source that this importable module consists of.

    Raises
    ------
    NoSourceError
        The module is in no file, as a notebook's cells are.
    """
    covered = _covered(module)
    digest = hashlib.sha256()
    for name, path in sorted(covered.files.items()):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for name, number in sorted(covered.versions.items()):
        digest.update(f"{name}=={number}\0".encode())
    return digest.hexdigest()


def object_digest(plugin: object) -> str | None:
    """Return the digest of an object's classes and state; None where all of its classes are Blast's own.

    Raises
    ------
    NoSourceError
        One of its classes is in no file, or its state cannot be pickled.
    """
    modules = _modules_of(type(plugin))
    if not modules:
        return None
    try:
        state = pickle.dumps(vars(plugin))
    except Exception as error:
        raise NoSourceError(f"the state of {type(plugin).__name__} cannot be pickled: {error}") from error
    digest = hashlib.sha256(state)
    for module in modules:
        digest.update(_digest_once(type(plugin), module).encode())
    return digest.hexdigest()


def _digest_once(owner: type, module: str) -> str:
    """Return the digest for the loaded class, computed once: its file may change after the import."""
    if (owner, module) not in _DIGESTS:
        _DIGESTS[owner, module] = source_digest(module)
    return _DIGESTS[owner, module]


def _modules_of(owner: type) -> list[str]:
    modules = dict.fromkeys(base.__module__ for base in owner.__mro__)
    return [name for name in modules if not _known(name.partition(".")[0])]


def _known(top: str) -> bool:
    return top in BLAST or (top in sys.stdlib_module_names and top != MAIN)


def _covered(module: str) -> _Covered:
    covered, seen = _Covered(), set[str]()
    own = _own_packages(module.partition(".")[0])
    pending = list(own)
    while pending:
        top = pending.pop()
        if top in seen or _known(top):
            continue
        seen.add(top)
        files = _files(top)
        if top in own and not files:
            raise NoSourceError(f"the module {top} is in no file: move it into a module of its own")
        if top not in own and any(INSTALLED & set(path.parts) for path in files.values()):
            covered.versions |= {name: version(name) for name in packages_distributions().get(top, ())}
            continue
        covered.files |= files
        pending += _imported(files.values())
    return covered


def _own_packages(top: str) -> set[str]:
    """Return the package, and the other packages of its distribution."""
    if top == MAIN:
        return {top}
    packages = packages_distributions()
    distributions = set(packages.get(top, ()))
    return {top, *(name for name, found in packages.items() if distributions & set(found))}


def _files(top: str) -> dict[str, Path]:
    """Return the files of a top-level package by their names in it, wherever it is installed."""
    if top == MAIN:
        name = getattr(sys.modules[MAIN], "__file__", None)
        return {} if name is None or not Path(name).is_file() else {MAIN: Path(name)}
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return {}
    if spec.submodule_search_locations is None:
        return {} if spec.origin is None or not Path(spec.origin).is_file() else {top: Path(spec.origin)}
    return {
        f"{top}/{path.relative_to(folder)}": path
        for folder in map(Path, spec.submodule_search_locations)
        for path in folder.rglob("*")
        if path.name.endswith(SUFFIXES) and path.is_file()
    }


def _imported(files: Iterable[Path]) -> Iterator[str]:
    """Yield the top-level name of every import in these files."""
    for path in files:
        if path.suffix != ".py":
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            # A template or a file of another version of Python: if the plug-in needs it, it cannot be imported.
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                yield node.module.partition(".")[0]
