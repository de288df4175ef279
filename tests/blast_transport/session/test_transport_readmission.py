"""Readmission of demoted receivers that keep up; the others do not delay the session."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.session.peers.peer import PeerState
from blast_transport.session.peers.readmission import SECONDS, WINDOWS, Readmission
from tests.support.transport.transport_data import data_of
from tests.support.transport.transport_world import FOREVER, SPACING, Host, Spans, World

BLOCK = 40
WINDOW = 8
credits_ = st.lists(st.tuples(st.floats(0.0, 0.9), st.integers(0, 40), st.integers(0, 20)), min_size=1, max_size=40)


@given(st.integers(1, 3), credits_)
def test_readmission_requires_sustained_progress(demotions: int, credits_: list) -> None:
    readmission = Readmission()
    for _ in range(demotions):
        readmission.begin()
    now, sent, kept = 0.0, 0, list[tuple[float, int]]()
    for later, more, lag in credits_:
        now, sent = now + later, sent + more
        kept = [*kept, (now, sent)] if lag <= WINDOW else []
        since, block = kept[0] if kept else (now, sent)
        long_enough = now >= since + SECONDS * 2 ** (demotions - 1) and sent >= block + WINDOWS * WINDOW
        assert readmission.made(sent - lag, sent, WINDOW, now) == (bool(kept) and long_enough)


def session(spans: Spans, blocks: int, seed: int, buffer: int = 2 * WINDOW) -> World:
    """Run an optical session with two receivers, of which the first freezes in these spans."""
    there = [Host(f"h{index}", buffer=buffer * BLOCK) for index in range(2)]
    there[0].frozen = spans
    return World(data_of(blocks * BLOCK), there, seed=seed, window=WINDOW).run()


@settings(max_examples=2)
@given(st.floats(0.05, 0.3), st.floats(1.2, 1.5), st.integers(0, 2**32))
def test_recovered_receiver_is_readmitted(when: float, for_: float, seed: int) -> None:
    world = session([(when, when + for_)], 3500, seed)
    peer = world.sender.peers["h0"]
    assert peer.readmission.demotions == 1 and not peer.demoted
    assert all(world.outcome(name) is PeerState.COMPLETE for name in world.hosts)


@settings(max_examples=2)
@given(st.floats(0.05, 1.0), st.integers(0, 2**32))
def test_receiver_that_stays_frozen_delays_others_once(when: float, seed: int) -> None:
    world = session([(when, FOREVER)], 1500, seed)
    assert world.sender.peers["h0"].readmission.demotions == 1
    assert world.hosts["h1"].complete_at < 1500 * SPACING / 0.95 + 1.5


@settings(max_examples=2)
@given(st.lists(st.tuples(st.floats(0.1, 2.5), st.floats(0.3, 1.5)), min_size=3, max_size=6), st.integers(0, 2**32))
def test_repeated_freezes_delay_others_less_and_less(cycles: list[tuple[float, float]], seed: int) -> None:
    spans, now = list[tuple[float, float]](), 0.0
    for up, down in cycles:
        spans.append((now + up, now + up + down))
        now += up + down
    world = session(spans, 4000, seed)
    demotions = world.sender.peers["h0"].readmission.demotions
    # Before its fourth demotion, a receiver keeps up for one, two and four seconds.
    assert demotions <= 4
    assert world.hosts["h1"].complete_at < 4000 * SPACING / 0.95 + 0.5 + 1.2 * demotions
    assert all(world.outcome(name) is PeerState.COMPLETE for name in world.hosts)
