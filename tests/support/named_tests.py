"""A check that tests in a document (`tests/algorithms/test_x.py::test_y`) exist, without importing them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def missing_tests(names: Iterable[str]) -> list[str]:
    """Return the names of tests, or of files of tests, that do not exist."""
    return [name for name in names if not _exists(name)]


def _exists(name: str) -> bool:
    path, _, function = name.partition("::")
    return (ROOT / path).is_file() and (not function or function in _functions(path))


@cache
def _functions(path: str) -> frozenset[str]:
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    return frozenset(n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))
