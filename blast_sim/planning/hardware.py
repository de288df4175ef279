"""A fabric as a list of things to buy, and what they cost together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from blast_sim.planning.prices import Item, Prices

RACK_PORT, SWITCH = "optical port of a ToR", "optical switch"
"""Names of pieces in a bill; a switch with its ports behind it."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """Racks with optical ports, and splitters by fan-out, on one optical switch.

    `packed`: the input of a splitter shares a duplex switch port with one of its outputs, so that 1:N takes N ports and
    not N + 1 as in the paper. `amplified`: the size whose splitters have an amplifier before them (None: none has).
    """

    racks: int
    ports: int
    pool: Mapping[int, int]
    packed: bool = False
    amplified: int | None = None

    def with_pool(self, pool: Mapping[int, int]) -> Hardware:
        """Return the hardware with other splitters; it has no amplifiers if the pool lacks the amplified size."""
        kept = {fan_out: count for fan_out, count in sorted(pool.items()) if count}
        return replace(self, pool=kept, amplified=self.amplified if self.amplified in kept else None)

    @property
    def amplifiers(self) -> int:
        """Amplifiers to buy."""
        return 0 if self.amplified is None else self.pool[self.amplified]

    @property
    def switch_ports(self) -> int:
        """Ports that the optical switch must have."""
        return self.racks * self.ports + sum(
            count * ports_of(fan_out, self.packed) for fan_out, count in self.pool.items()
        )


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of a bill: `item` is the price and power of one of the `count` pieces."""

    name: str
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
    """The pieces to buy."""

    lines: tuple[BillLine, ...]

    @property
    def price(self) -> float:
        """The total price."""
        return sum(line.price for line in self.lines)

    @property
    def watts(self) -> float:
        """Of everything."""
        return sum(line.watts for line in self.lines)


def ports_of(fan_out: int, packed: bool) -> int:
    """Return the number of ports of the optical switch that a 1:`fan_out` splitter takes."""
    return fan_out if packed else fan_out + 1


def bill(hardware: Hardware, prices: Prices) -> Bill | None:
    """Return the bill with the cheapest switch that has enough ports; None if the price table has no such switch."""
    large_enough = [offer for offer in prices.switches if offer.ports >= hardware.switch_ports]
    if not large_enough:
        return None
    switch = min(large_enough, key=lambda offer: offer.item.price)
    return Bill(
        (
            BillLine(f"{SWITCH}, {switch.ports} ports", 1, switch.item),
            BillLine(RACK_PORT, hardware.racks * hardware.ports, prices.rack_port),
            *glass(hardware.pool, hardware.amplifiers, prices),
        )
    )


def glass(pool: Mapping[int, int], amplifiers: int, prices: Prices) -> Iterator[BillLine]:
    """Yield the lines of these splitters and amplifiers."""
    for fan_out, count in sorted(pool.items()):
        if count:
            yield BillLine(f"1:{fan_out} splitter", count, prices.splitters[fan_out].item)
    if amplifiers:
        assert prices.amplifier is not None, "nothing is amplified without an offer"
        yield BillLine("optical amplifier", amplifiers, prices.amplifier.item)
