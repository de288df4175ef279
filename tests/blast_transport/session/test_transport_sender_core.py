"""Messages, waits and timeouts of the sender core."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_transport.base.errors import LocalProtocolError
from blast_transport.session.peers.peer import Peer, PeerEvent, PeerState
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.sender_core import SenderCore
from blast_transport.wire.messages import (
    Abort,
    Credit,
    Demoted,
    Digests,
    EndOfData,
    Fin,
    Heartbeat,
    Hello,
    Message,
    Nack,
    Phase,
    PhaseReady,
    Readmitted,
    Ready,
    Repair,
    TransportReport,
)
from blast_transport.wire.transports import MULTICAST, OPTICAL, PIPELINE, UNICAST

HELLO = Hello(7, 395, 10, 4, "blake3", "memory", "m")
STREAM = Hello(7, None, 10, 4, "blake3", "memory", "m")
BLOCKS = 10
DIGEST = bytes(range(32))
TIMINGS = SenderTimings(connect=2.0, ready=3.0, stall=5.0, heartbeat=1.0, freeze=1.0, hold_up=0.2)


def take_sent(core: SenderCore, *kinds: type[Message]) -> list[tuple[str, Message]]:
    messages = [(name, message) for name, message in core.outbox if not kinds or isinstance(message, kinds)]
    core.outbox.clear()
    return messages


def invited(*names: str, hello: Hello = HELLO) -> SenderCore:
    core = SenderCore(hello, names, 0.0, TIMINGS)
    for name in names:
        core.connected(name, 0.0)
    assert take_sent(core) == [(name, hello) for name in names]
    return core


def phase_ready(*names: str, transport: str = OPTICAL, hello: Hello = HELLO, window: int = 4) -> SenderCore:
    core = invited(*names, hello=hello)
    for name in names:
        core.receive(name, Ready(7), 0.1)
    core.settle_held()
    phase = Phase(7, 1, transport, 0)
    core.begin_phase(phase, lambda _: phase, 0.1)
    core.window = window
    assert [message for _, message in take_sent(core)] == [phase] * len(names)
    assert not core.sending
    for name in names:
        core.receive(name, PhaseReady(7, 1), 0.2)
    assert core.sending
    return core


def may_send(core: SenderCore, now: float) -> bool:
    return core.permitted(now) > core.next_block


def send(core: SenderCore, count: int, now: float = 0.3) -> None:
    for _ in range(count):
        assert may_send(core, now)
        core.digest(bytes(16))
        core.sent(core.next_block)


def at_end(*names: str) -> SenderCore:
    core = phase_ready(*names, window=BLOCKS)
    send(core, BLOCKS)
    core.end_of_data(395, DIGEST, 1.0)
    return core


def repairs(core: SenderCore, name: str, now: float = 1.0) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return all repairs for a receiver, grouped by block."""
    taken: dict[int, list[tuple[int, int]]] = {}
    while repair := core.take_repair(name, now):
        for first, count in repair:
            block, index = divmod(first, 4)
            taken.setdefault(block, []).append((index, count))
    return list(taken.items())


def wait_until(core: SenderCore, end: float) -> None:
    """Tick when the core asks for it, and at the end."""
    while (due := core.deadline()) is not None and due < end:
        core.tick(due)
    core.tick(end)


def fin(reason: str = "", digest: bytes = DIGEST) -> Fin:
    return Fin(7, digest, reason, 1.0)


def test_sender_waits_briefly_for_answers_but_not_for_late_receivers() -> None:
    core = invited("a", "b")
    core.receive("a", Ready(7), 0.1)
    assert core.settling and core.deadline() == 0.4
    core.tick(0.39)
    assert core.settling
    core.tick(0.4)
    assert not core.settling and not core.peers["b"].over
    wait_until(core, 2.9)
    assert not core.peers["b"].over
    wait_until(core, 3.0)
    assert "invitation" in core.peers["b"].reason
    core = phase_ready("a", "b")
    core.disconnected("b", "lost", 0.4)
    core.connected("b", 0.5)
    assert not core.settling and core.sending


def test_pause_of_sender_does_not_time_out_receivers() -> None:
    core = invited("a", "b")
    core.receive("a", Ready(7), 0.1)
    core.tick(30.0)
    assert not core.peers["b"].over
    wait_until(core, 32.8)
    assert not core.peers["b"].over
    wait_until(core, 33.0)
    assert core.peers["b"].over
    core = at_end("a")
    core.disconnected("a", "lost", 1.5, timeout=3.0)
    core.tick(30.0)
    core.connected("a", 30.1)
    assert not core.peers["a"].over


def test_sender_waits_briefly_for_receivers_that_are_dialed_again() -> None:
    core = invited("a", "b", "c")
    core.receive("a", Ready(7), 0.1)
    core.disconnected("b", "its leader may lead no member", 0.1, timeout=3.0)
    core.disconnected("c", "it is down", 0.1)
    core.tick(0.2)
    assert core.settling and core.deadline() == 0.5
    core.connected("b", 0.3)
    core.tick(0.5)
    assert core.settling
    core.receive("b", Ready(7), 0.6)
    assert not core.settling and core.sending
    core = invited("a", "b")
    core.receive("a", Ready(7), 0.1)
    core.disconnected("b", "its leader was lost", 0.1, timeout=3.0)
    core.tick(0.5)
    assert not core.settling and not core.peers["b"].over
    core = phase_ready("a", "b")
    core.disconnected("b", "its leader was lost", 0.4, timeout=3.0)
    assert not core.settling


def test_late_receiver_gets_missed_blocks_as_repairs() -> None:
    core = invited("a", "b")
    core.receive("a", Ready(7), 0.1)
    core.tick(1.0)
    core.settle_held()
    phase = Phase(7, 1, OPTICAL, 0)
    core.begin_phase(phase, lambda _: phase, 1.0)
    core.receive("a", PhaseReady(7, 1), 1.0)
    core.window = BLOCKS
    send(core, 3)
    core.receive("b", Ready(7, held=((1, 1),)), 1.2)
    assert take_sent(core, Phase)[-1] == ("b", Phase(7, 1, OPTICAL, 3))
    core.receive("b", PhaseReady(7, 1), 1.3)
    assert [block for block, _ in repairs(core, "b", 1.4)] == [0, 2]


def test_sender_waits_for_checking_receivers_and_all_of_stream() -> None:
    core = invited("a", "b")
    core.receive("a", Ready(7), 0.1)
    for now in (0.2, 0.5, 0.8):
        core.receive("b", Heartbeat(7, 0), now)
        core.tick(now + 0.3)
        assert core.settling
    core.tick(1.3)
    assert not core.settling
    stream = invited("a", "b", hello=STREAM)
    stream.receive("a", Ready(7), 0.1)
    stream.tick(2.9)
    assert stream.settling


def test_digests_are_sent_once_and_in_full_after_reconnection() -> None:
    core = phase_ready("a")
    send(core, 3)
    core.send_digests()
    assert take_sent(core, Digests) == [("a", Digests(7, 0, bytes(48)))]
    send(core, 1)
    core.send_digests()
    assert take_sent(core, Digests) == [("a", Digests(7, 3, bytes(16)))]
    core.disconnected("a", "lost", 0.4)
    core.connected("a", 0.5)
    core.receive("a", Ready(7, ((0, 1),)), 0.6)
    assert take_sent(core, Digests, Phase) == [("a", Digests(7, 0, bytes(64))), ("a", Phase(7, 1, OPTICAL, 4))]
    core.receive("a", PhaseReady(7, 1), 0.7)
    assert repairs(core, "a") == [(1, [(0, 4)]), (2, [(0, 4)]), (3, [(0, 4)])]


def test_reconnected_receiver_is_notified_of_its_demotion() -> None:
    """Only a receiver that knows of its demotion accepts datagrams beyond its window."""
    core = phase_ready("a", "b")
    core.demote("a", "too slow")
    core.disconnected("a", "lost", 0.4, timeout=3.0)
    take_sent(core)
    core.connected("a", 0.5)
    core.receive("a", Ready(7, phase=1), 0.6)
    assert take_sent(core, Demoted) == [("a", Demoted(7))]


def test_sender_respects_window_of_slowest_receiver() -> None:
    core = phase_ready("a", "b", window=4)
    send(core, 4)
    assert not may_send(core, 0.3)
    core.receive("a", Credit(7, 4, 4, 4), 0.3)
    assert not may_send(core, 0.3)
    core.receive("b", Credit(7, 1, 1, 1), 0.3)
    send(core, 1)
    assert not may_send(core, 0.3)
    core.lose("b", "gone")
    send(core, 3)
    assert not may_send(core, 0.3)


def test_blocked_optical_sender_reports_position_in_heartbeats() -> None:
    core = phase_ready("a", window=2)
    send(core, 2)
    take_sent(core)
    assert not may_send(core, 0.35)
    assert take_sent(core, Heartbeat) == []
    for now in (0.41, 0.45, 0.52):
        assert not may_send(core, now)
    assert take_sent(core, Heartbeat) == [("a", Heartbeat(7, 2))] * 2


def test_single_slow_receiver_is_demoted() -> None:
    core = phase_ready("a", "b", window=4)
    send(core, 4)
    core.receive("a", Credit(7, 4, 4, 4), 0.3)
    for step in range(30):
        core.receive("b", Heartbeat(7, 0), 0.3 + step * 0.01)
        if may_send(core, 0.3 + step * 0.01):
            break
    assert "slower" in core.peers["b"].demoted and not core.peers["a"].demoted
    assert 0.2 <= step * 0.01 < 0.25


def test_frozen_receiver_is_demoted_and_served_after_others() -> None:
    core = phase_ready("a", "b", window=4)
    send(core, 4)
    core.receive("a", Credit(7, 4, 4, 4), 0.4)
    core.receive("b", Nack(7, ((0, 16),)), 0.4)
    core.receive("b", Credit(7, 0, 0, 0), 1.3)
    core.tick(1.4)
    assert "no progress" in core.peers["b"].demoted
    assert repairs(core, "b", 2.0) == []
    core.receive("a", Credit(7, 8, 8, 8), 1.4)
    for _ in range(6):
        core.receive("a", Credit(7, core.next_block, core.next_block, core.next_block), 1.4)
        send(core, 1, 1.4)
    core.end_of_data(395, DIGEST, 1.5)
    assert [block for block, _ in repairs(core, "b", 2.0)] == [0, 1, 2, 3]


@pytest.mark.parametrize(("transport", "demoted"), [(OPTICAL, {"a", "b"}), (MULTICAST, set())])
def test_silence_of_all_receivers_demotes_none_on_a_shared_network(transport: str, demoted: set[str]) -> None:
    core = phase_ready("a", "b", transport=transport, window=BLOCKS)
    send(core, 4)
    for name, now in (("a", 0.4), ("b", 0.7)):
        core.receive(name, Credit(7, 1, 1, 1), now)
    wait_until(core, 3.0)
    assert {name for name, peer in core.peers.items() if peer.demoted} == demoted


@pytest.mark.parametrize("ended", [3.0, None])
def test_receiver_that_stays_silent_after_an_outage_is_demoted(ended: float | None) -> None:
    core = phase_ready("a", "b", transport=MULTICAST, window=BLOCKS)
    send(core, 4)
    for name in "ab":
        core.receive(name, Credit(7, 1, 1, 1), 0.4)
    if ended is not None:
        wait_until(core, ended)
        core.receive("a", Credit(7, 2, 2, 2), ended)
        wait_until(core, ended + 0.99)
    due = 5.4 if ended is None else ended + 1.0
    assert not core.peers["b"].demoted
    wait_until(core, due)
    assert "no progress" in core.peers["b"].demoted


def test_receivers_that_no_datagram_reached_join_a_chain_behind_a_complete_one() -> None:
    core = phase_ready("a", "b", "c", "limited", transport=MULTICAST, window=BLOCKS)
    core.peers["limited"].ready = Ready(7, max_rate=1e6)
    core.exclude_unreached("b", "nothing arrived")
    core.exclude_unreached("limited", "nothing arrived")
    send(core, BLOCKS)
    core.receive("a", Credit(7, BLOCKS, BLOCKS - 1, BLOCKS - 1), 0.4)
    core.receive("c", Credit(7, BLOCKS, 0, 3), 0.4)
    assert core.unreached() == ["b"] and core.first_complete() is None
    core.receive("a", Credit(7, BLOCKS, BLOCKS, BLOCKS), 0.5)
    assert core.first_complete() == "a"
    core.receive("b", Nack(7, ((0, 4 * BLOCKS),)), 0.5)
    core.chain_unreached(["b"])
    assert core.next_block == 0 and core.peers["b"].active and not core.peers["b"].retransmits
    assert take_sent(core, Readmitted) == [("b", Readmitted(7))]
    core.receive("b", Credit(7, BLOCKS, BLOCKS, BLOCKS), 0.6)
    assert core.unreached() == []


def test_receiver_that_cannot_join_the_group_counts_as_unreached() -> None:
    core = invited("a", "b")
    for name in "ab":
        core.receive(name, Ready(7), 0.1)
    phase = Phase(7, 1, MULTICAST, 0)
    core.begin_phase(phase, lambda _: phase, 0.1)
    core.receive("a", PhaseReady(7, 1), 0.2)
    core.receive("b", PhaseReady(7, 1, "another IP version"), 0.2)
    assert core.unreached() == ["b"] and core.peers["b"].demoted == "another IP version"


def test_demoted_receiver_is_served_during_optical_pause() -> None:
    core = phase_ready("a", "b", window=4)
    send(core, 4)
    core.receive("b", Nack(7, ((0, 16),)), 0.4)
    core.demote("b", "slow")
    assert repairs(core, "b", 2.0) == []
    core.pause()
    assert [block for block, _ in repairs(core, "b", 2.0)] == [0, 1, 2, 3]
    core.receive("b", Nack(7, ((0, 4),)), 0.4)
    core.resume()
    assert repairs(core, "b", 3.0) == []


@pytest.mark.parametrize(("position", "readmitted"), [(3, False), (4, True)])
def test_demoted_receiver_that_caught_up_is_readmitted(position: int, readmitted: bool) -> None:
    core = phase_ready("a", "b", window=4)
    core.demote("b", "slow")
    for sent in (4, 8):
        send(core, 4)
        core.receive("a", Credit(7, sent, sent, sent), 0.4)
    core.receive("b", Credit(7, position, position, position), 1.0)
    take_sent(core)
    core.readmit()
    assert core.peers["b"].active is readmitted
    assert take_sent(core) == [("b", Readmitted(7))] * readmitted


@pytest.mark.parametrize("reason", ["limited", "often", "ended"])
def test_limited_repeated_or_late_demotions_are_final(reason: str) -> None:
    core = invited("a", "b")
    core.receive("a", Ready(7), 0.1)
    core.receive("b", Ready(7, max_rate=1e6 if reason == "limited" else 0.0), 0.1)
    for _ in range(5 if reason == "often" else 1):
        core.peers["b"].demoted = ""
        core.demote("b", "slow")
    if reason == "ended":
        core.end_of_data(395, DIGEST, 1.0)
    core.readmit()
    assert core.peers["b"].demoted


def test_sender_uses_minimum_rate_and_demotes_outliers() -> None:
    core = invited("a", "b", "c")
    for name, rate in (("a", 0.0), ("b", 9e6), ("c", 1e3)):
        core.receive(name, Ready(7, max_rate=rate), 0.1)
    assert core.rate_of(10e6) == 9e6 and core.peers["c"].demoted


def test_common_limit_of_all_receivers_of_a_multicast_demotes_none() -> None:
    core = invited("a", "b")
    for name, rate in (("a", 1e6), ("b", 1.1e6)):
        core.receive(name, Ready(7, max_rate=rate), 0.1)
    core.settle_held()
    phase = Phase(7, 1, MULTICAST, 0)
    core.begin_phase(phase, lambda _: phase, 0.1)
    for name in ("a", "b"):
        core.receive(name, PhaseReady(7, 1), 0.1)
    assert core.rate_of(1e12) == 1e6
    assert not any(peer.demoted for peer in core.peers.values())


def test_repairs_precede_end_of_data_of_requesting_receiver() -> None:
    core = at_end("a", "b")
    core.receive("a", Nack(7, ((39, 1), (21, 2), (4, 1))), 1.1)
    take_sent(core)
    assert core.take_repair("a", 2.0) == [(39, 1), (21, 2), (4, 1)]
    assert take_sent(core) == []
    assert core.take_repair("a", 2.0) == []
    assert take_sent(core) == [("a", EndOfData(7, 395, DIGEST))]
    assert core.peers["a"].repaired_bytes == 10 + 20 + 10
    assert repairs(core, "b") == []


def test_credit_cancels_repairs_of_received_blocks() -> None:
    core = phase_ready("a", "b")
    send(core, 4)
    core.receive("a", Nack(7, ((1, 1), (4, 10))), 1.0)
    core.receive("a", Credit(7, 3, 3, 3), 1.0)
    assert repairs(core, "a", 1.2) == [(3, [(0, 2)])]


def test_blocked_receiver_with_last_repair_fails_after_timeout() -> None:
    """Its connection is full, so the sender takes no more repairs for it and sends it no end of data."""
    core = at_end("a", "b")
    core.receive("a", Nack(7, ((4, 1),)), 1.1)
    assert core.take_repair("a", 1.2) == [(4, 1)]
    wait_until(core, 6.0)
    assert core.peers["a"].state is PeerState.READY
    assert core.deadline() is not None
    wait_until(core, 6.2)
    assert core.peers["a"].state is PeerState.FAILED
    assert core.peers["a"].reason == "did not confirm: no progress for 5 s after the end of data"


def test_common_losses_are_repaired_by_multicast_others_by_unicast() -> None:
    core = phase_ready("a", "b", window=BLOCKS)
    send(core, 8)
    core.receive("a", Nack(7, ((4, 3), (20, 1))), 1.0)
    core.receive("b", Nack(7, ((5, 3),)), 1.01)
    assert repairs(core, "a", 1.02) == [], "others may miss the same"
    assert core.take_shared_repair(1.005, 0.02) is None
    assert core.take_shared_repair(1.03, 0.02) == (1, 0b0110)
    assert core.take_shared_repair(1.03, 0.02) is None
    assert repairs(core, "a", 1.03) == [(1, [(0, 1)]), (5, [(0, 1)])]
    assert repairs(core, "b", 1.03) == [(1, [(3, 1)])]
    assert core.shared_repairs == 2


def test_repairs_do_not_wait_for_ended_optical_phase() -> None:
    core = phase_ready("a", "b", window=BLOCKS)
    send(core, 8)
    core.receive("a", Nack(7, ((4, 3),)), 1.0)
    assert repairs(core, "a", 1.05) == []
    assert repairs(core, "a", 1.2) == [(1, [(0, 3)])]


def test_nacks_of_unsent_segments_are_ignored() -> None:
    core = phase_ready("a", window=BLOCKS)
    send(core, 2)
    core.receive("a", Nack(7, ((0, 1 << 33),)), 1.0)
    assert [block for block, _ in repairs(core, "a", 2.0)] == [0, 1, 2], "the third may be on its way"
    core.receive("a", Nack(7, ((1 << 40, 1 << 40),)), 2.0)
    assert repairs(core, "a", 3.0) == []


def test_receiver_with_too_many_nacks_fails() -> None:
    core = at_end("a")
    for _ in range(10):
        core.receive("a", Nack(7, ((0, 40),)), 1.0)
        repairs(core, "a", 2.0)
    assert "4 times" in core.peers["a"].reason


def test_stalled_receiver_fails_after_others_are_served() -> None:
    core = at_end("a", "b")
    repairs(core, "a")
    repairs(core, "b")
    core.receive("b", Credit(7, 5, 5, 5), 5.5)
    wait_until(core, 6.0)
    assert not core.peers["a"].over, "b may use the whole link"
    core.receive("b", fin(), 6.1)
    wait_until(core, 10.4)
    assert core.peers["b"].state is PeerState.COMPLETE and not core.peers["a"].over
    wait_until(core, 10.5)
    assert "did not confirm" in core.peers["a"].reason and core.over


def test_stalled_receiver_fails_despite_progress_of_others() -> None:
    core = at_end("a", "b")
    repairs(core, "a")
    repairs(core, "b")
    for number in range(1, 13):
        core.receive("b", Credit(7, number, number, number), 5.0 * number)
        wait_until(core, 5.0 * number)
        assert not core.peers["a"].over
    wait_until(core, 61.0)
    assert "did not confirm" in core.peers["a"].reason and not core.peers["b"].over


@pytest.mark.parametrize(
    "message",
    [
        Ready(7),
        Repair(7, ((1, b"x"),)),
        EndOfData(7, 395, DIGEST),
        HELLO,
        Phase(7, 2, OPTICAL, 0),
        Digests(7, 0, bytes(16)),
        fin(digest=bytes(32)),
        fin(reason="disk full"),
        Abort(7, "stopped"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_invalid_message_fails_only_its_receiver(message: Message) -> None:
    core = at_end("a", "b")
    repairs(core, "a")
    core.receive("a", message, 1.0)
    assert core.peers["a"].state is PeerState.FAILED and core.peers["a"].reason
    assert core.peers["b"].state is PeerState.READY


def test_early_fin_and_nonexistent_blocks_break_protocol() -> None:
    core = phase_ready("a")
    core.receive("a", fin(), 0.3)
    assert "broke the protocol" in core.peers["a"].reason
    core = invited("a")
    core.receive("a", Ready(7, ((5, 6),)), 0.3)
    assert "holds blocks that do not exist" in core.peers["a"].reason


def test_messages_of_other_session_are_ignored() -> None:
    core = invited("a")
    core.receive("a", Fin(6, DIGEST, "old"), 0.1)
    assert core.peers["a"].state is PeerState.INVITED


def test_blocks_held_by_all_receivers_are_not_sent() -> None:
    core = invited("a", "b")
    core.receive("a", Ready(7, ((0, 5),)), 0.1)
    core.receive("b", Ready(7, ((2, 1), (4, 5))), 0.1)
    core.settle_held()
    assert [block for block in range(BLOCKS) if block in core.everywhere] == [2, 4]


def test_holes_made_by_receivers_are_not_sent_or_resumed() -> None:
    core = invited("a", "b", hello=replace(HELLO, holes=((1, 3), (6, 1))))
    core.receive("a", Ready(7, ((0, 4), (6, 1))), 0.1)
    core.receive("b", Ready(7, ((1, 3), (6, 2))), 0.1)
    core.settle_held()
    assert [block for block in range(BLOCKS) if block in core.everywhere] == [1, 2, 3, 6]
    assert core.hole_blocks == 4
    assert [core.peers[name].resumed for name in "ab"] == [1, 1]


def test_holes_are_sent_if_one_receiver_does_not_make_them() -> None:
    core = invited("a", "device", hello=replace(HELLO, holes=((1, 3),)))
    core.receive("a", Ready(7, ((1, 3),)), 0.1)
    core.receive("device", Ready(7), 0.1)
    core.settle_held()
    assert core.everywhere.held == core.hole_blocks == 0


def test_unicast_blocks_are_queued_as_they_are_digested() -> None:
    core = phase_ready("a", "b", transport=UNICAST, hello=STREAM)
    core.owe(3)
    assert [block for block, _ in repairs(core, "a")] == [0, 1, 2]
    core.owe(3)
    core.owe(5)
    assert [block for block, _ in repairs(core, "a")] == [3, 4]
    assert [block for block, _ in repairs(core, "b")] == [0, 1, 2, 3, 4]


def test_stream_keeps_blocks_that_active_receivers_need() -> None:
    core = phase_ready("a", "b", hello=STREAM, window=8)
    send(core, 6)
    core.receive("a", Credit(7, 6, 5, 5), 0.4)
    core.receive("b", Credit(7, 6, 2, 2), 0.4)
    assert core.needed == 2
    core.demote("b", "slow")
    assert core.needed == 5
    core.lose("a", "gone")
    assert core.needed == 2, "no other receiver is left"


def test_receiver_that_misses_phase_is_demoted_and_may_follow() -> None:
    core = phase_ready("a", "b")
    phase = Phase(7, 2, OPTICAL, 0, parameters={"port": 1})
    core.begin_phase(phase, lambda _: phase, 1.0)
    core.receive("a", PhaseReady(7, 2), 1.1)
    assert not core.sending
    wait_until(core, 1.9)
    assert not core.sending
    wait_until(core, 2.0)
    assert core.sending and core.peers["b"].demoted
    core.receive("b", PhaseReady(7, 2), 2.5)
    assert core.peers["b"].state is PeerState.READY
    core.begin_phase(phase, lambda _: phase, 3.0)
    wait_until(core, 10.0)
    assert core.peers["b"].state is PeerState.FAILED


def test_sender_does_not_wait_for_receiver_outside_chain() -> None:
    core = phase_ready("a", "b")
    light, chain = Phase(7, 2, OPTICAL, 0), Phase(7, 3, PIPELINE, 0)
    core.begin_phase(light, lambda _: light, 1.0)
    core.begin_phase(chain, {"a": chain}.get, 1.0)
    core.receive("a", PhaseReady(7, 3), 1.1)
    assert core.sending and core.peers["b"].state is PeerState.READY


def test_receiver_that_closes_at_each_invitation_fails() -> None:
    core = invited("a")
    for second in range(3):
        core.disconnected("a", "closed", float(second))
        core.connected("a", second + 0.5)
    assert core.peers["a"].state is PeerState.FAILED


def test_sender_sends_heartbeats_during_long_pause() -> None:
    core = phase_ready("a")
    send(core, 2)
    core.receive("a", Credit(7, 2, 2, 2), 0.3)
    for second in range(1, 100):
        core.tick(float(second))
        assert take_sent(core) == [("a", Heartbeat(7, 2))]
    assert core.sending


def test_quit_aborts_connected_and_disconnected_receivers() -> None:
    core = phase_ready("a", "b")
    core.disconnected("b", "lost", 0.3)
    core.quit("enough")
    assert take_sent(core, Abort) == [("a", Abort(7, "enough"))]
    assert [peer.reason for peer in core.peers.values()] == ["enough", "enough"] and core.over


def test_sender_keeps_latest_transport_report_of_each_receiver() -> None:
    """Earlier reports that were not read are dropped."""
    core = phase_ready("a", "b", transport=PIPELINE)
    for number in range(100):
        core.receive("a", TransportReport(HELLO.session, 1, b"%d" % number), 0.5)
    core.receive("b", TransportReport(HELLO.session, 1, b"b"), 0.5)
    assert {name: word.body for name, word in core.words.items()} == {"a": b"99", "b": b"b"}


def test_invalid_state_transition_raises_local_error() -> None:
    with pytest.raises(LocalProtocolError):
        Peer(0.0).move(PeerEvent.STORED)
