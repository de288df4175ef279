"""The failures of section IV-G of the Kascade paper, for a chain of any length and a transfer of any duration."""

from __future__ import annotations

from dataclasses import dataclass

PAPER_NODES = 100
LONG_ENOUGH = 40.0
"""Seconds of a transfer in which the paper's last failure, at 28 s, has its effect before the end."""


@dataclass(frozen=True)
class Scenario:
    """The nodes (from 1, the sender) that fail, with the seconds after the start, as in the paper."""

    name: str
    failures: tuple[tuple[float, tuple[int, ...]], ...]

    def moments(self, nodes: int, seconds: float) -> list[tuple[float, list[int]]]:
        """Return the failures in a chain of `nodes` during a transfer that takes `seconds` without failures.

        The same nodes fail in each further hundred; in a shorter chain those beyond its end do not exist.
        """
        scale = time_scale(seconds)
        hundreds = range(0, nodes, PAPER_NODES)
        return [
            (scale * moment, some)
            for moment, paper in self.failures
            if (some := [hundred + node for hundred in hundreds for node in paper if hundred + node <= nodes])
        ]


def time_scale(seconds: float) -> float:
    """Return the factor of the paper's times: 1 for a transfer that is `LONG_ENOUGH`, less for a shorter one."""
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
