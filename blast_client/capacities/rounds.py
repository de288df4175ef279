"""The order of measurements: rounds of pairs that share no host, so that no measurement disturbs another.

A round-robin tournament (circle method: one host stays, the others rotate) has n - 1 rounds for an even number of
hosts. For an odd number there is a dummy host, whose partner pauses. Each round runs in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence

Pair = tuple[str, str]
"""From one host to another."""


def link_rounds(hosts: Sequence[str], root: str) -> list[list[Pair]]:
    """Return every ordered pair of hosts once, except links into the root, which carry no data."""
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
