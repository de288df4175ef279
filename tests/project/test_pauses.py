"""Tests wait for conditions instead of sleeping; each remaining sleep has a comment with its reason."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
WAITS = TESTS / "support" / "waiting.py"


def is_sleep(call: ast.Call) -> bool:
    name = call.func
    return (
        isinstance(name, ast.Attribute)
        and name.attr == "sleep"
        and isinstance(name.value, ast.Name)
        and name.value.id in {"time", "asyncio"}
    )


def bare_pauses(path: Path) -> list[int]:
    """Return the lines with a pause in real time that has no comment with its reason."""
    text = path.read_text()
    if "sleep(" not in text or "virtual_time" in text or path.stem in {"tl1", "tl1_contract"}:
        return []
    lines = text.splitlines()
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and is_sleep(node)]
    return [call.lineno for call in calls if "  # " not in lines[call.lineno - 1]]


def test_every_sleep_has_a_comment_with_its_reason() -> None:
    found = {path: lines for path in TESTS.rglob("*.py") if path != WAITS and (lines := bare_pauses(path))}
    assert not found, "wait for a condition (tests/support/waiting.py), or state the reason beside the sleep"
