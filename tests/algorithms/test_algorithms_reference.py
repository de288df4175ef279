"""The docstrings of `algorithms/`: their examples run, and functions that other packages use are documented fully."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLERS = ("blast_controller", "blast_sim", "mininet_topos")
WITH_EXAMPLES = ["blast_base.extras"]
"""Modules of other packages whose docstrings have examples."""


@cache
def modules() -> list[str]:
    files = sorted((ROOT / "algorithms").rglob("*.py"))
    return [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files]


@cache
def used_by_others() -> frozenset[tuple[str, str]]:
    """Return (module, name) of each import from `algorithms` in the packages around it."""
    texts = (file.read_text() for package in CALLERS for file in (ROOT / package).rglob("*.py"))
    # Parse only files with the word: every worker of a run does this while it collects.
    trees = (ast.parse(text) for text in texts if "algorithms" in text)
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    ours = (node for node in nodes if (node.module or "").partition(".")[0] == "algorithms")
    return frozenset((str(node.module), alias.name) for node in ours for alias in node.names)


def imports_of(file: Path) -> set[str]:
    imports = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom))
    pairs = ((str(node.module), alias.name) for node in imports for alias in node.names)
    return {one for module, name in pairs for one in (module, f"{module}.{name}")}


@cache
def functions() -> list[tuple[str, str]]:
    found = set()
    for name, member_name in used_by_others():
        # A module that is imported whole stands for all that it offers.
        whole = f"{name}.{member_name}" in modules()
        module = importlib.import_module(f"{name}.{member_name}" if whole else name)
        public = [one for one, member in vars(module).items() if inspect.isfunction(member) and not one.startswith("_")]
        found |= {(module.__name__, one) for one in (public if whole else [member_name])}
    return sorted((name, member_name) for name, member_name in found if is_own_function(name, member_name))


def is_own_function(name: str, member_name: str) -> bool:
    member = getattr(importlib.import_module(name), member_name)
    return inspect.isfunction(member) and member.__module__ == name


def of(name: str, member_name: str) -> Callable[..., object]:
    found: Callable[..., object] = getattr(importlib.import_module(name), member_name)
    return found


def reached() -> set[str]:
    """Return the modules of `algorithms` that the packages around it import, directly or indirectly."""
    found, waiting = (
        set[str](),
        {one for name, member_name in used_by_others() for one in (name, f"{name}.{member_name}")},
    )
    known = set(modules())
    while waiting:
        module = waiting.pop()
        if module in known - found:
            found.add(module)
            waiting |= imports_of(Path(str(importlib.import_module(module).__file__)))
    return found


def test_every_module_is_imported_by_another_package() -> None:
    """Except the NetworkX graphs, which `docs/explanation/balanced-multicast.md` offers to researchers."""
    packages = {name for name in modules() if hasattr(importlib.import_module(name), "__path__")}
    assert set(modules()) - packages - reached() == {"algorithms.balanced.graphs"}


@pytest.mark.parametrize("name", [*modules(), *WITH_EXAMPLES])
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_docstrings_of_used_functions_list_parameters_and_returns() -> None:
    assert len(functions()) > 30
    for name, member_name in functions():
        function = of(name, member_name)
        text, signature = inspect.getdoc(function) or "", inspect.signature(function)
        assert "\nExamples\n--------\n>>> " in text, member_name
        _, found, rest = text.partition("\nParameters\n----------\n")
        lines = [line for line in rest.partition("\n\n")[0].splitlines() if not line.startswith(" ")]
        documented = {one for line in lines for one in line.partition(" : ")[0].split(", ")} if found else set()
        assert documented == set(signature.parameters), member_name
        if signature.return_annotation != "None":
            assert "\nReturns\n-------\n" in text or "\nYields\n------\n" in text, member_name
