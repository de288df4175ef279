"""The last changes of the list of circuits, so that an emulated switch can show a list that lags behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from optical_switch.model import Circuit, CircuitState

MAX_CHANGES = 256
"""Changes that are kept. A list that lags by more changes lags only by these: memory stays bounded."""


class ListedState(NamedTuple):
    """An entry of the list, without its circuit. A change creates many: named tuples are faster than data classes."""

    state: CircuitState
    cause: str = ""
    locked: bool = False
    owner: str = ""


Before = Iterable[tuple[Circuit, ListedState | None]]
"""Circuits with their entries in the list; None: a circuit was not listed."""


class CircuitHistory:
    """The entries of circuits before each of the last changes.

    Only differences are kept: a copy of the whole list at each change would take longer than the change itself.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._changes: deque[tuple[int, float, Before]] = deque(maxlen=MAX_CHANGES)
        self._count = 0
        self._shown = 0
        """Changes that a list has shown: a later list shows them, too, also when it comes to lag."""

    def record(self, before: Before) -> None:
        """Record that these circuits change now."""
        self._count += 1
        self._changes.append((self._count, self._now(), before))

    def restore(self, listed: dict[Circuit, ListedState], seconds: float) -> None:
        """Set the present list back to that of `seconds` ago, but not behind one that was shown."""
        until, shown = self._now() - seconds, self._count
        for number, changed, before in reversed(self._changes):
            if changed <= until or number <= self._shown:
                break
            shown = number - 1
            for circuit, state in before:
                if state is None:
                    listed.pop(circuit, None)
                else:
                    listed[circuit] = state
        self._shown = max(self._shown, shown)
