"""State machines as tables: which state follows, and what cannot happen."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from blast_controller.core.model.errors import ImpossibleTransitionError

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


def follow(machine: str, table: Mapping[tuple[S, E], S], state: S, event: E) -> S:
    """Return the next state.

    Raises ImpossibleTransitionError, which names the machine, for a pair that is not in the table.
    """
    try:
        return table[state, event]
    except KeyError:
        raise ImpossibleTransitionError(machine, str(state.value), str(event.value)) from None
