"""Bugs that tests put into the product on purpose: the simulations must find every one of them.

A bug edits the text of functions, so that all else in them stays as it is. Where the text to replace is no longer in a
function, planting the bug fails: it has to follow the product.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import pytest


@dataclass(frozen=True)
class SeededBug:
    """`edits` are, by method ("module:Class.method"), new texts by old texts; `seed` is an episode that finds it soon.

    A new text of several lines is written as if its first line were not indented.
    """

    summary: str
    edits: Mapping[str, Mapping[str, str]]
    seed: int = 0

    def plant(self, patch: pytest.MonkeyPatch) -> None:
        """Replace the methods."""
        for method, replacements in self.edits.items():
            owner, _, name = method.rpartition(".")
            patch.setattr(resolve_name(owner), name, _edited(resolve_name(method), replacements))


def _edited(method: Any, replacements: Mapping[str, str]) -> Any:
    function = method.fget if isinstance(method, property) else method
    lines, first = inspect.getsourcelines(function)
    source = textwrap.dedent("".join(lines))
    for old, new in replacements.items():
        places = re.findall(rf"^( *).*{re.escape(old)}", source, re.MULTILINE)
        assert len(places) == 1, f"{function.__qualname__} has {len(places)} times {old!r}"
        source = source.replace(old, new.replace("\n", f"\n{places[0]}"))
    # A traceback shows the lines of the product's file.
    padded = "\n" * (first - 1) + source
    made: dict[str, Any] = {}
    code = compile(padded, function.__code__.co_filename, "exec")
    exec(code, function.__globals__, made)
    return made[function.__name__]
