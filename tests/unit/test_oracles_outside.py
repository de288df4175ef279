"""Tests look at the core from outside: by its commands, its journal, the devices, and its public view."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
BUGS = TESTS / "support" / "seeded_bugs.py"
"""Where faults are put into the core, which needs its insides."""


def reached_inside(tree: ast.AST) -> Iterator[str]:
    """What is read of something called `core` that only the core itself may know."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            if name == "core":
                yield f"line {node.lineno}: core.{node.attr}"


def test_no_test_reaches_into_the_core() -> None:
    found = [
        f"{file.relative_to(TESTS)}, {place}"
        for file in TESTS.rglob("*.py")
        if file != BUGS
        for place in reached_inside(ast.parse(file.read_text()))
    ]
    assert not found, "\n".join(found)


def test_what_reaches_inside_is_found() -> None:
    assert list(reached_inside(ast.parse("world.core._state.book\ncore._timers\ncore.view.holders\nself._core")))
    assert not list(reached_inside(ast.parse("core.view.holders\nself.core.requests\ncore.__class__")))
