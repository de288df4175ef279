"""Parity segments for requests of several receivers: enough for each, and no more than needed."""

from __future__ import annotations

from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from blast_transport.blocks.layout import BlockLayout
from blast_transport.session.peers.group_coding import GroupCoding
from blast_transport.session.peers.peer import Peer, PeerEvent, PeerState
from blast_transport.session.peers.repairs import Repairs
from blast_transport.transports.sending import ParityRun
from blast_transport.wire.groups import MAX_PARITY
from blast_transport.wire.messages import Ready

SEGMENTS, GROUP = 4, 2
LAYOUT = BlockLayout(395, 10, SEGMENTS)
GATHER = 0.02
GROUP_SEGMENTS = SEGMENTS * GROUP


def receiver(coding: bool = True) -> Peer:
    peer = Peer(0.0, ready=Ready(7, coding=coding))
    for event in (PeerEvent.CONNECTED, PeerEvent.ANSWERED):
        peer.move(event)
    return peer


def coded(*peers: Peer) -> Repairs:
    repairs = Repairs(peers)
    repairs.begin(GROUP)
    return repairs


def ask(repairs: Repairs, peer: Peer, segments: set[int], now: float) -> None:
    for segment in sorted(segments):
        repairs.ask(peer, segment, segment + 1, SEGMENTS)
        repairs.await_others(peer, range(segment // SEGMENTS, segment // SEGMENTS + 1), now)


def shared(repairs: Repairs, now: float, sent: int = LAYOUT.blocks) -> list[tuple[int, int] | ParityRun]:
    found = []
    while (one := repairs.take_shared(LAYOUT, now, GATHER, sent)) is not None:
        found.append(one)
    return found


def outstanding(peer: Peer) -> set[int]:
    return {
        block * SEGMENTS + index
        for block in range(LAYOUT.blocks)
        for index in range(SEGMENTS)
        if (peer.retransmits.mask(block) & LAYOUT.all_segments(block)) >> index & 1
    }


def fewest_for_all(losses: list[set[int]]) -> int:
    """Return the fewest segments, retransmitted or parity, that serve all receivers, by trying all selections."""
    needed = len(losses) * GROUP_SEGMENTS
    for chosen in product((False, True), repeat=GROUP_SEGMENTS):
        sent = {segment for segment, yes in enumerate(chosen) if yes}
        needed = min(needed, len(sent) + max(len(lost - sent) for lost in losses))
    return needed


def extra(count: int) -> int:
    return round(count * count / GROUP_SEGMENTS)


@given(st.lists(st.sets(st.integers(0, GROUP_SEGMENTS - 1), min_size=1), min_size=2, max_size=5))
def test_parity_serves_every_receiver_with_the_fewest_segments(losses: list[set[int]]) -> None:
    peers = [receiver() for _ in losses]
    repairs = coded(*peers)
    for peer, lost in zip(peers, losses, strict=True):
        ask(repairs, peer, lost, 1.0)
    assert shared(repairs, 1.0 + GATHER / 2) == []
    found = shared(repairs, 1.0 + GATHER)
    fewest = fewest_for_all(losses)
    if len(set.union(*losses)) > fewest:
        assert found == [ParityRun(0, 0, fewest + extra(fewest))]
        assert not any(map(outstanding, peers))
    else:
        # Retransmissions, some of them to single receivers, need as few.
        assert not any(isinstance(one, ParityRun) for one in found)
        retransmitted = sum(one[1].bit_count() for one in found if not isinstance(one, ParityRun))
        assert retransmitted + sum(len(outstanding(peer)) for peer in peers) == fewest


def test_each_round_has_new_parity_until_none_is_left() -> None:
    """The second round counts on the parity of the first; a receiver that still asks has got none of it."""
    peers = [receiver(), receiver()]
    repairs, sent, rounds = coded(*peers), 0, list[int]()
    for second in range(100):
        ask(repairs, peers[0], {0, 1, 2}, second)
        ask(repairs, peers[1], {3, 4, 5}, second)
        match shared(repairs, second + GATHER):
            case [ParityRun(0, first, stop)] if first == sent:
                rounds.append(stop - first)
                sent = stop
            case []:
                break
    assert rounds[:3] == [4, 2, 4] and sent > MAX_PARITY - 3
    assert [outstanding(peer) for peer in peers] == [{0, 1, 2}, {3, 4, 5}]
    assert repairs.take(peers[0], LAYOUT, 99 + GATHER) == [(0, 3)]


def test_single_receiver_gets_the_rest_of_parity_that_did_not_suffice() -> None:
    peers = [receiver(), receiver()]
    repairs = coded(*peers)
    ask(repairs, peers[0], {0, 1, 2}, 1.0)
    ask(repairs, peers[1], {3}, 1.0)
    assert shared(repairs, 1.0 + GATHER) == [ParityRun(0, 0, 4)]
    ask(repairs, peers[0], {0, 1, 2}, 2.0)
    assert shared(repairs, 2.0 + GATHER) == [ParityRun(0, 4, 6)]


LONG = BlockLayout(10 * SEGMENTS * GROUP * 100, 10, SEGMENTS)


def foreseen(needs: list[int], pause: float = 0.0) -> list[ParityRun]:
    """Return the parity of the groups that follow groups with these needs, `pause` seconds later."""
    peers = [receiver(), receiver()]
    repairs, now = coded(*peers), 0.0
    for group, need in enumerate(needs):
        now = group * 0.1
        for peer, begin in zip(peers, (0, SEGMENTS), strict=True):
            ask(repairs, peer, {group * GROUP_SEGMENTS + begin + index for index in range(need)}, now)
        while (found := repairs.take_shared(LONG, now + GATHER, GATHER, (group + 1) * GROUP)) is not None:
            assert isinstance(found, ParityRun) and found.group == group
    following = [
        repairs.take_shared(LONG, now + pause, GATHER, (group + 1) * GROUP)
        for group in range(len(needs), len(needs) + 2)
    ]
    return [run for run in following if isinstance(run, ParityRun)]


@given(st.lists(st.integers(0, 3), min_size=8, max_size=12))
def test_parity_in_advance_is_the_minimum_of_recent_needs(needs: list[int]) -> None:
    assume(needs[-1])
    count = min(needs[-8:])
    groups = len(needs), len(needs) + 1
    assert foreseen(needs) == ([ParityRun(group, 0, count) for group in groups] if count else [])


def test_no_parity_is_sent_in_advance_without_recent_losses() -> None:
    assert foreseen([2] * 7) == []
    assert foreseen([2] * 8, pause=0.9) != []
    assert foreseen([2] * 8, pause=1.1) == []


def test_requests_wait_while_the_rest_of_the_group_is_sent() -> None:
    peers = [receiver(), receiver()]
    repairs = coded(*peers)
    for peer, lost in zip(peers, ({0}, {1}), strict=True):
        ask(repairs, peer, lost, 1.0)
    assert shared(repairs, 1.24, sent=1) == []
    assert shared(repairs, 1.48, sent=1) == []
    assert repairs.take(peers[0], LAYOUT, 1.48) == []
    assert shared(repairs, 1.48 + GATHER / 2, sent=2) == []
    assert shared(repairs, 1.48 + GATHER, sent=2) == [ParityRun(0, 0, 1)]
    for peer, lost in zip(peers, ({8, 10}, {8, 9}), strict=True):
        ask(repairs, peer, lost, 2.0)
    assert shared(repairs, 2.24, sent=2) == []
    assert shared(repairs, 2.27, sent=2) == [(2, 1)]
    # Nothing is sent any more.
    assert repairs.take(peers[1], LAYOUT, 2.27) == [(9, 1)]


def test_parity_is_for_receivers_that_keep_up_and_decode() -> None:
    late, python, one, other = receiver(), receiver(coding=False), receiver(), receiver()
    late.move(PeerEvent.PHASE)
    assert late.state is PeerState.CHANGING_PHASE
    repairs = coded(late, python, one, other)
    for segment, peer in enumerate((late, python, one)):
        ask(repairs, peer, {segment}, 1.0)
    assert shared(repairs, 1.0 + GATHER) == []
    ask(repairs, one, {2}, 2.0)
    ask(repairs, other, {5}, 2.0)
    assert shared(repairs, 2.0 + GATHER) == [ParityRun(0, 0, 1)]
    assert [outstanding(peer) for peer in (late, python, one, other)] == [{0}, {1}, set(), set()]


def test_last_group_is_shorter() -> None:
    peers = [receiver(), receiver()]
    repairs = coded(*peers)
    assert list(GroupCoding(4).members(2, LAYOUT)) == [8, 9]
    for peer, lost in zip(peers, ({36}, {39}), strict=True):
        ask(repairs, peer, lost, 1.0)
    assert shared(repairs, 1.0 + GATHER) == [ParityRun(4, 0, 1)]


@given(st.lists(st.sets(st.integers(0, 38)), min_size=2, max_size=6), st.floats(0.0, 0.3), st.integers(0, 10))
def test_every_request_is_answered(losses: list[set[int]], spread: float, sent: int) -> None:
    """A segment that neither parity nor a retransmission repairs stays outstanding for a single repair."""
    assume(any(losses))
    peers = [receiver() for _ in losses]
    repairs = coded(*peers)
    found = []
    for number, (peer, lost) in enumerate(zip(peers, losses, strict=True)):
        now = 1.0 + spread * number
        ask(repairs, peer, lost, now)
        found += shared(repairs, now, sent)
    found += shared(repairs, 10.0)
    for peer, lost in zip(peers, losses, strict=True):
        alone = set[int]()
        while runs := repairs.take(peer, LAYOUT, 10.0):
            alone |= {segment for first, count in runs for segment in range(first, first + count)}
        together = {
            one[0] * SEGMENTS + index
            for one in found
            if not isinstance(one, ParityRun)
            for index in range(SEGMENTS)
            if one[1] >> index & 1
        }
        by_parity = {
            segment
            for segment in lost
            if any(isinstance(one, ParityRun) and one.group == segment // GROUP_SEGMENTS for one in found)
        }
        assert lost <= alone | together | by_parity
