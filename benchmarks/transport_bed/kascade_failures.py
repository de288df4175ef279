"""Who fails when in section IV-G of the Kascade paper, brought to a chain of another length and a shorter transfer."""

from __future__ import annotations

from dataclasses import dataclass

PAPER_NODES = 100
PAPER_SECONDS = 5e9 / 80e6
"""How long the paper's transfer took without failures: 5 GB at 80 MB/s."""
LONG_ENOUGH = 40.0
"""Seconds of a transfer in which the paper's last failure, at 28 s, has its effect before the end."""


@dataclass(frozen=True)
class Scenario:
    """As in the paper: which nodes (from 1, the sender) fail how many seconds after the start."""

    name: str
    failures: tuple[tuple[float, tuple[int, ...]], ...]

    def moments(self, nodes: int, seconds: float) -> list[tuple[float, list[int]]]:
        """Who fails when in a chain of `nodes` during a transfer that takes so many `seconds` without failures.

        In each further hundred of nodes the same fail at the same moments, so that the shares stay; in a shorter chain
        those beyond its end do not exist. The seconds are the paper's own while the transfer is `LONG_ENOUGH`, and
        shorter in proportion otherwise.
        """
        scale = time_scale(seconds)
        hundreds = range(0, nodes, PAPER_NODES)
        return [
            (scale * moment, some)
            for moment, paper in self.failures
            if (some := [hundred + node for hundred in hundreds for node in paper if hundred + node <= nodes])
        ]


def time_scale(seconds: float) -> float:
    """By which the paper's seconds are multiplied in a transfer that takes so many without failures."""
    return min(1.0, seconds / LONG_ENOUGH)


_TWO, _FIVE, _TEN = (29, 69), (9, 29, 49, 69, 89), (9, 19, 29, 39, 49, 59, 69, 79, 89, 99)
_FIRST = 10.0
NO_FAILURE = Scenario("no failure", ())
SCENARIOS = (
    *(Scenario(f"{len(nodes)} % at once", ((_FIRST, nodes),)) for nodes in (_TWO, _FIVE, _TEN)),
    *(
        Scenario(
            f"{len(nodes)} % one after the other",
            tuple((_FIRST + step * number, (node,)) for number, node in enumerate(nodes)),
        )
        for nodes, step in ((_TWO, 10.0), (_FIVE, 4.0), (_TEN, 2.0))
    ),
)
LEAST_GAP = 2.0
"""Seconds between two failures that come one after the other, where they are nearest."""
