"""The statements of section VI-B of the Blast paper as checks of the results of a run of Figure 4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blast_sim.base.report import Row

OVERSUBSCRIBED, NON_BLOCKING = "10:1", "non-blocking"
LOADS = ("none", "light", "heavy")
PACKET_METHODS = ("naive", "hdfs", "overlay")

BLAST_SECONDS: Mapping[str, float] = {"none": 0.265, "light": 0.295, "heavy": 0.295}
"""The only times that the paper's text states; those of other methods are bars without numbers."""

STATED_RATIOS: Mapping[str, float] = {"hdfs": 102.0, "overlay": 37.0}
"""By how much Blast is faster at most on the non-blocking core; read here as under heavy load."""

SAME = 1e-9
"""Rounding of sums of flows."""

Times = Mapping[tuple[str, str, str], float]
"""Seconds by (method, network, background)."""


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A sentence of the paper and whether the results bear it out."""

    sentence: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of a method's time to Blast's on the non-blocking core under heavy load.

    `to_stated` is relative to the paper's value for Blast, `to_ours` to ours with its computation. `smallest` and
    `largest` are relative to the paper's, over all simulated readings of the paper's text.
    """

    method: str
    stated: float
    to_stated: float
    to_ours: float
    smallest: float
    largest: float


def times_of(rows: Iterable[Row]) -> dict[tuple[str, str, str], float]:
    """Return the seconds of each cell, without the cells of other readings."""
    return {
        (row["method"], row["network"], row["background"]): row["seconds"] for row in rows if not row.get("reading")
    }


def ratios(rows: Sequence[Row]) -> list[Ratio]:
    """Return the ratios that the paper states, beside those of these results."""
    times = times_of(rows)
    found = []
    for method, stated in STATED_RATIOS.items():
        seconds = [
            row["seconds"]
            for row in rows
            if (row["method"], row["network"], row["background"]) == (method, NON_BLOCKING, "heavy")
        ]
        ours = times[method, NON_BLOCKING, "heavy"]
        paper = BLAST_SECONDS["heavy"]
        blast = times["blast", OVERSUBSCRIBED, "heavy"]
        found.append(Ratio(method, stated, ours / paper, ours / blast, min(seconds) / paper, max(seconds) / paper))
    return found


def claims(times: Times, within_racks: Times) -> Sequence[PaperClaim]:
    """Check the paper's seven observations on Figure 4.

    `within_racks` has the times of the overlay where no group leaves its rack.
    """
    return [
        PaperClaim("naive, light load: a faster core changes nothing", _core_is_idle(times, "light")),
        PaperClaim("naive: the non-blocking core helps under heavy load only", _helps_only_when_heavy(times)),
        PaperClaim("HDFS beats naive, by less and less as the load grows", _hdfs_gains_shrink(times)),
        PaperClaim("10:1, heavy load: HDFS is worse than naive", _gain(times, OVERSUBSCRIBED, "heavy") < 1),
        PaperClaim("the overlay beats HDFS and naive everywhere", _overlay_is_best(times)),
        PaperClaim("the overlay is held up between racks as the load grows", _held_up(times, within_racks)),
        PaperClaim("Blast is the same for light and heavy load", _blast_is_constant(times)),
    ]


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * max(one, other)


def _core_is_idle(times: Times, load: str) -> bool:
    return _same(times["naive", OVERSUBSCRIBED, load], times["naive", NON_BLOCKING, load])


def _helps_only_when_heavy(times: Times) -> bool:
    helps = times["naive", NON_BLOCKING, "heavy"] < 0.9 * times["naive", OVERSUBSCRIBED, "heavy"]
    return helps and all(_core_is_idle(times, load) for load in ("none", "light"))


def _gain(times: Times, network: str, load: str) -> float:
    return times["naive", network, load] / times["hdfs", network, load]


def _hdfs_gains_shrink(times: Times) -> bool:
    oversubscribed, non_blocking = (
        [_gain(times, net, load) for load in LOADS] for net in (OVERSUBSCRIBED, NON_BLOCKING)
    )
    falling = all(series == sorted(series, reverse=True) for series in (oversubscribed, non_blocking))
    return falling and min(*oversubscribed[:2], *non_blocking) > 1


def _overlay_is_best(times: Times) -> bool:
    cells = [(network, load) for network in (OVERSUBSCRIBED, NON_BLOCKING) for load in LOADS]
    return all(times["overlay", *cell] < min(times["hdfs", *cell], times["naive", *cell]) for cell in cells)


def _held_up(times: Times, within_racks: Times) -> bool:
    """Check that the overlay's share of time before its second stage grows with the load, to more than 75 %.

    The second stage uses links within racks only.
    """
    shares = [1 - within_racks["overlay", NON_BLOCKING, load] / times["overlay", NON_BLOCKING, load] for load in LOADS]
    return shares == sorted(shares) and shares[-1] > 0.75


def _blast_is_constant(times: Times) -> bool:
    return _same(times["blast", OVERSUBSCRIBED, "light"], times["blast", OVERSUBSCRIBED, "heavy"])
