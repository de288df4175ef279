"""Tests see the core from outside, by its public names and its view, so that its inside can be built anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.unit.test_layout import ROOT, python_files

PUTS_FAULTS_INSIDE = {"tests/support/seeded_bugs.py"}
FORMER = {"ledger", "warm"}
"""What the core once gave out of its inside."""


def is_core(node: ast.expr) -> bool:
    """Whether this is a core by its name, or the view of one."""
    match node:
        case ast.Name(id="core") | ast.Attribute(attr="core"):
            return True
        case ast.Attribute(attr="view", value=value):
            return is_core(value)
        case _:
            return False


def reaches_inside(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Every attribute of a core that is none of a test's business."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_core(node.value):
            is_private = node.attr.startswith("_") and not node.attr.endswith("__")
            if is_private or node.attr in FORMER:
                yield node


def test_no_test_reaches_inside_the_core():
    files = {str(file.relative_to(ROOT)): file for file in python_files("tests")}
    found = []
    for name in files.keys() - PUTS_FAULTS_INSIDE:
        inside = reaches_inside(ast.parse(files[name].read_text()))
        found += [f"{name}:{node.lineno}: {ast.unparse(node)}" for node in inside]
    assert found == []


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("core._state", True),
        ("world.core._state.table", True),
        ("lab.runtime.core._decide = None", True),
        ("self.core.ledger.holder", True),
        ("core.view._state", True),
        ("core.view.holders", False),
        ("core.__class__", False),
        ("world.store._state", False),
        ("state.ledger", False),
    ],
)
def test_this_would_be_noticed(text, inside):
    assert bool(list(reaches_inside(ast.parse(text)))) is inside
