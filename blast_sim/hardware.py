"""A fabric as a list of things to buy, and what they cost together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blast_sim.prices import Item, Prices


@dataclass(frozen=True, slots=True)
class Hardware:
    """So many racks with so many optical ports each, and splitters by ways, on one optical switch.

    `packed`: the input of a splitter shares a pair of switch ports with one of its outputs, so that 1:N takes N ports
    and not N + 1 as in the paper.
    """

    racks: int
    ports: int
    pool: Mapping[int, int]
    packed: bool = False

    @property
    def switch_ports(self) -> int:
        """Ports that the optical switch must have."""
        return self.racks * self.ports + sum(count * ports_of(ways, self.packed) for ways, count in self.pool.items())


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill: `item` is the price and power of one of the `count` pieces."""

    what: str
    count: int
    item: Item

    @property
    def price(self) -> float:
        """Of all of them."""
        return self.count * self.item.price

    @property
    def watts(self) -> float:
        """Of all of them."""
        return self.count * self.item.watts


@dataclass(frozen=True, slots=True)
class Bill:
    """What to buy."""

    lines: tuple[Line, ...]

    @property
    def price(self) -> float:
        """Of everything."""
        return sum(line.price for line in self.lines)

    @property
    def watts(self) -> float:
        """Of everything."""
        return sum(line.watts for line in self.lines)


def ports_of(ways: int, packed: bool) -> int:
    """Ports of the optical switch that a 1:`ways` splitter takes."""
    return ways if packed else ways + 1


def bill(hardware: Hardware, prices: Prices) -> Bill | None:
    """The cheapest way to buy it; None if no switch of the table has enough ports."""
    large_enough = [offer for offer in prices.switches if offer.ports >= hardware.switch_ports]
    if not large_enough:
        return None
    switch = min(large_enough, key=lambda offer: offer.item.price)
    splitters = [
        Line(f"1:{ways} splitter", count, prices.splitters[ways].item)
        for ways, count in sorted(hardware.pool.items())
        if count
    ]
    return Bill(
        (
            Line(f"optical switch, {switch.ports} ports", 1, switch.item),
            Line("optical port of a ToR", hardware.racks * hardware.ports, prices.rack_port),
            *splitters,
        )
    )
