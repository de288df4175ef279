"""Detection of a stuck link in a chain from the reported positions of its nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.transports.pipeline.chain_watch import ChainPosition, ChainWatch

MEGABYTE = 1 << 20
NAMES = ("", "n1", "n2", "n3", "n4", "n5")


def watched(reached: Callable[[float], list[int]], seconds: float = 6.0) -> tuple[float, tuple[str, str]] | None:
    """Return the time at which a stuck link is found, and its ends; `reached` returns the positions at a time."""
    watch = ChainWatch()
    for tick in range(int(seconds * 10)):
        now = tick / 10
        found = watch.stuck([ChainPosition(*one) for one in zip(NAMES, reached(now), strict=False)], now)
        if found is not None:
            return now, found
    return None


@pytest.mark.parametrize("place", range(1, 6))
def test_stuck_link_ends_at_node_that_forwards_nothing(place: int) -> None:
    """The nodes before it stop as well once they are ahead of it by the buffer size."""

    def reached(now: float) -> list[int]:
        ahead = int(min(now * 100, 32)) * MEGABYTE
        return [1 << 30, *(ahead * (5 - n) for n in range(1, place)), *([0] * (6 - place))]

    when, ends = watched(reached)  # type: ignore[misc]
    assert (ends, when) == ((NAMES[place - 1], NAMES[place]), 2.0)


@given(st.floats(1e5, 1e9), st.lists(st.integers(0, 6 * MEGABYTE), min_size=5, max_size=5))
def test_progressing_chain_has_no_stuck_link(rate: float, behind: list[int]) -> None:
    """Each node lags behind its predecessor by the data in the sockets, at any rate."""
    slack = min(1.0, rate / 1e8)

    def reached(now: float) -> list[int]:
        done = [1 << 40]
        for lag in behind:
            done.append(max(0, min(int(rate * now), done[-1]) - int(lag * slack)))
        return done

    assert watched(reached) is None


def test_lost_node_restarts_comparison() -> None:
    watch = ChainWatch()
    for tick in range(60):
        chain = [ChainPosition("", MEGABYTE), *(ChainPosition(name, 0) for name in NAMES[1 : 6 - tick // 19])]
        found = watch.stuck(chain, tick / 10)
        assert (found is None) == (tick < 57 + 20), tick


def test_pause_of_sender_restarts_comparison() -> None:
    watch = ChainWatch()
    for now in (0.0, 0.5, 9.0, 9.5, 10.0, 10.5):
        assert watch.stuck([ChainPosition("", MEGABYTE), ChainPosition("n1", 0)], now) is None
    assert watch.stuck([ChainPosition("", MEGABYTE), ChainPosition("n1", 0)], 11.0) == ("", "n1")


def test_complete_chain_has_no_stuck_link() -> None:
    assert watched(lambda now: [MEGABYTE] * 6) is None


@pytest.mark.parametrize("claimed", [0, 1 << 40])
def test_false_position_blames_link_of_its_node(claimed: int) -> None:
    """A node with too low a position seems to receive nothing, one with too high a position to send nothing."""
    found = watched(lambda now: [1 << 30, int(now * 1e6), claimed, int(now * 1e6), int(now * 1e6)])
    assert found is not None and "n2" in found[1]
