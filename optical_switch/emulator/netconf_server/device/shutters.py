"""Shutters of the ports: a circuit whose port is disabled stays in the list, and passes no light."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from optical_switch.emulator.crossbar import ends
from optical_switch.emulator.hardware import Apply
from optical_switch.model import Circuit, Port


class ShutteredPaths:
    """The function `apply` of the hardware: sets the light paths of circuits whose ports are both enabled."""

    def __init__(self, apply: Apply) -> None:
        self.closed: frozenset[Port] = frozenset()
        self._apply = apply
        self._circuits: frozenset[Circuit] = frozenset()
        self._applying = asyncio.Lock()

    async def __call__(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        """Remove light paths, then set others, and return when they are set."""
        async with self._applying:
            await self._apply(self._open(removed, self.closed), self._open(added, self.closed))
            self._circuits = self._circuits.difference(removed).union(added)

    async def set_state(self, enabled: Iterable[Port], disabled: Iterable[Port]) -> None:
        """Open the shutters of some ports, then close those of others."""
        async with self._applying:
            closed = self.closed.difference(enabled).union(disabled)
            before, after = self._open(self._circuits, self.closed), self._open(self._circuits, closed)
            await self._apply(sorted(set(before) - set(after)), sorted(set(after) - set(before)))
            self.closed = closed

    @staticmethod
    def _open(circuits: Iterable[Circuit], closed: frozenset[Port]) -> list[Circuit]:
        return [circuit for circuit in circuits if closed.isdisjoint(ends(circuit))]
