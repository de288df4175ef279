"""The order in which hosts measure each other: rounds of pairs that share no host, so that none disturbs another.

A round-robin tournament (the circle method: one stays, the others turn) gives n - 1 rounds for an even number of hosts;
an odd number plays with a ghost, and who meets it rests. Each round is played in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence

Pair = tuple[str, str]
"""From one host to another."""


def link_rounds(hosts: Sequence[str], root: str) -> list[list[Pair]]:
    """Every ordered pair of two hosts once, but for those into the root, which no data needs."""
    rounds = []
    for played in _tournament(hosts):
        for pairs in (played, [(end, start) for start, end in played]):
            rounds.append([(start, end) for start, end in pairs if end != root])
    return [pairs for pairs in rounds if pairs]


def _tournament(hosts: Sequence[str]) -> list[list[Pair]]:
    players: list[str | None] = [*hosts, *([None] if len(hosts) % 2 else [])]
    rounds = []
    for _ in range(len(players) - 1):
        half = len(players) // 2
        meetings = zip(players[:half], reversed(players[half:]), strict=True)
        rounds.append([(one, other) for one, other in meetings if one is not None and other is not None])
        players[1:] = [players[-1], *players[1:-1]]
    return rounds
