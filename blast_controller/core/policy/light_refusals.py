"""Parts that the power budget keeps waiting: of what is free, no tree gives each of their receivers the right light.

Asking again makes sense once something more is free; until then the policy does not hear of such a part, which would
only keep light from others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.requests import RequestKey

Name = tuple[RequestKey, int]
"""What the policy calls a part: (request, slot)."""


class LightRefusals:
    """Remembers who was refused, and how often anything had come free on each switch by then."""

    def __init__(self, inventory: Inventory, switches: Iterable[SwitchId]) -> None:
        self._inventory = inventory
        self._switches = tuple(switches)
        self._refused: dict[Name, tuple[object, ...]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._refused

    def put(self, name: Name, holder: object) -> None:
        """A part was refused everything that is free now and not kept free for `holder`."""
        self._refused[name] = self._now(holder)

    def take_ripe(self, holder: object) -> list[Name]:
        """Those for whom it may be different now; they are forgotten."""
        now = self._now(holder) if self._refused else ()
        ripe = [name for name, then in self._refused.items() if then != now]
        for name in ripe:
            del self._refused[name]
        return ripe

    def forget(self, name: Name) -> None:
        """A part wants something else now, or nothing any more."""
        self._refused.pop(name, None)

    def clear(self) -> None:
        """The rules have changed."""
        self._refused.clear()

    def _now(self, holder: object) -> tuple[object, ...]:
        return (holder, *(self._inventory.available.gained[switch] for switch in self._switches))


@dataclass(frozen=True, slots=True)
class Light:
    """What the policy has to know of light: the budget, and who waits because of it."""

    budget: LightBudget
    refusals: LightRefusals
