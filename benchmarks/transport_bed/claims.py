"""What the comparison must show, worked out from its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transport_bed.comparison import Row
from transport_bed.shape import UNSHAPED, Shape

MIDDLE = 7
"""The number of receivers at which most claims are made."""
_FAMILIAR_MBPS = 400.0


@dataclass(frozen=True)
class Claim:
    """A ratio and the bar that it has to reach."""

    words: str
    value: float
    bar: float

    @property
    def kept(self) -> bool:
        """Whether it does."""
        return self.value >= self.bar


class _Rates:
    """Bits of the file per second, by shape, receivers and tool, where there are any."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.found = {
            (row["rate_mbps"], row["receivers"], row["tool"]): row["gbps"] * 1e9
            for row in rows
            if "gbps" in row and row["shape"] != "lab"
        }

    def ratio(self, rate_mbps: float | None, receivers: int, one: str, others: Sequence[str]) -> float | None:
        """Of a tool to the best of others; None where either was not measured."""
        mine = self.found.get((rate_mbps, receivers, one))
        theirs = [self.found[key] for other in others if (key := (rate_mbps, receivers, other)) in self.found]
        return None if mine is None or not theirs else mine / max(theirs)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """All that these rows can decide."""
    rates = _Rates(rows)
    return [*_against_others(rates), *_against_limits(rates), *_flat(rates)]


def _against_others(rates: _Rates) -> Iterator[Claim]:
    free = UNSHAPED.rate_mbps
    wanted = [
        ("optical ÷ floor, unshaped", free, MIDDLE, "optical", ["floor"], 0.35),
        ("optical ÷ best of udpcast, uftp, unshaped", free, MIDDLE, "optical", ["udpcast", "uftp"], 6.0),
        (f"optical ÷ naive TCP, {_FAMILIAR_MBPS:g} Mbit/s", _FAMILIAR_MBPS, MIDDLE, "optical", ["naive"], 6.5),
    ]
    receivers = sorted({number for rate, number, _ in rates.found if rate is free})
    wanted += [("pipeline ÷ naive TCP, unshaped", free, number, "pipeline", ["naive"], 0.9) for number in receivers]
    for words, rate, number, one, others, bar in wanted:
        value = rates.ratio(rate, number, one, others)
        if value is not None:
            yield Claim(f"{words}, {number} receivers", value, bar)


def _against_limits(rates: _Rates) -> Iterator[Claim]:
    for (rate, receivers, tool), bits_per_second in sorted(rates.found.items(), key=str):
        shape = Shape(rate)
        limit, bar = {"optical": (shape.udp_limit, 0.97), "pipeline": (shape.tcp_limit, 0.9)}.get(tool, (None, 0.0))
        if limit is not None:
            yield Claim(f"{tool} ÷ payload limit, {shape.name}, {receivers} receivers", bits_per_second / limit, bar)


def _flat(rates: _Rates) -> Iterator[Claim]:
    by_receivers = {
        number: rate
        for (shaped, number, tool), rate in rates.found.items()
        if shaped == _FAMILIAR_MBPS and tool == "optical"
    }
    if len(by_receivers) > 1:
        least, most = min(by_receivers.values()), max(by_receivers.values())
        numbers = f"{min(by_receivers)} to {max(by_receivers)}"
        yield Claim(f"optical, {_FAMILIAR_MBPS:g} Mbit/s: slowest ÷ fastest, {numbers} receivers", least / most, 0.9)
