"""Exit statuses of `blast` commands, and argument types with error messages."""

from __future__ import annotations

import argparse
from collections.abc import Callable

DONE, FAILED, WRONG_INPUT, PARTLY = 0, 1, 2, 3
INTERRUPTED, TERMINATED = 130, 143
"""Exit statuses; the last two are 128 and the signal, as in shells."""


def checked(parse: Callable[[str], object]) -> Callable[[str], object]:
    """Return an argument type that reports the text of a parser's ValueError."""

    def argument_type(text: str) -> object:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return argument_type


def names(text: str) -> list[str]:
    """Parse a list of names with commas between them. Raises ValueError."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ValueError(f"{text!r} is not a list of names: write for example h2,h3")
    return found
