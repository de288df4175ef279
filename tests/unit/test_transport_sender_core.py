from __future__ import annotations

import pytest

from blast_transport.control import EndOfData, Fin, Hello, Message, Nack, Progress, Ready, Repair, Tune
from blast_transport.errors import LocalProtocolError
from blast_transport.sender_core import PeerState, SenderCore, SenderTimings

HELLO = Hello(7, "f", 95, 10, "239.0.0.1", 80)
DIGEST = bytes(range(32))
TIMINGS = SenderTimings(connect=2.0, ready=3.0, stall=5.0, heartbeat=1.0)


def new_core(*names: str, hello: Hello = HELLO) -> SenderCore:
    core = SenderCore(hello, names, 0.0, TIMINGS)
    assert said(core) == [(name, hello) for name in names]
    return core


def said(core: SenderCore) -> list[tuple[str, Message]]:
    messages = list(core.outbox)
    core.outbox.clear()
    return messages


def repairs(core: SenderCore, name: str) -> list[int]:
    taken = []
    while (segment := core.take_repair(name)) is not None:
        taken.append(segment)
    return taken


def fin(reason: str = "", digest: bytes = DIGEST) -> Fin:
    return Fin(7, digest, reason, 1.0, 0, 0)


def at_end(*names: str) -> SenderCore:
    core = new_core(*names)
    for name in names:
        core.receive(name, Ready(7), 0.1)
    for expected in range(HELLO.segments):
        assert core.take_segment() == expected
    core.end_of_data(DIGEST, 1.0)
    return core


def test_data_waits_for_every_answer() -> None:
    core = new_core("a", "b")
    core.receive("a", Ready(7), 0.1)
    assert not core.sending
    core.receive("b", Ready(7), 0.2)
    assert core.sending


def test_who_does_not_answer_is_left_out() -> None:
    core = new_core("a", "b")
    core.receive("a", Ready(7), 0.1)
    core.tick(2.9)
    assert not core.sending
    core.tick(3.0)
    assert core.sending
    assert "invitation" in core.peers["b"].reason


def test_the_whole_way() -> None:
    core = at_end("a")
    assert core.take_segment() == HELLO.segments
    assert core.take_repair("a") is None
    assert said(core) == [("a", EndOfData(7, DIGEST))]
    core.receive("a", fin(), 1.1)
    assert core.peers["a"].state is PeerState.COMPLETE
    assert core.over
    assert core.deadline() is None


def test_repairs_go_to_the_one_that_asked_before_its_end_of_data() -> None:
    core = new_core("a", "b")
    core.receive("a", Ready(7), 0.0)
    core.receive("b", Ready(7), 0.0)
    core.receive("a", Nack(7, ((5, 2), (1, 1))), 0.1)
    core.end_of_data(DIGEST, 0.2)
    assert core.take_repair("a") == 1
    assert said(core) == []
    assert repairs(core, "a") == [5, 6]
    assert said(core) == [("a", EndOfData(7, DIGEST))]
    assert core.peers["a"].repaired_bytes == 30
    assert repairs(core, "b") == []


def test_asked_twice_before_it_is_sent_is_sent_once() -> None:
    core = at_end("a")
    core.receive("a", Nack(7, ((9, 1),)), 1.0)
    core.receive("a", Nack(7, ((9, 1),)), 1.0)
    assert repairs(core, "a") == [9]
    assert core.peers["a"].repaired_bytes == 5


def test_a_lower_segment_asked_for_later_is_found() -> None:
    core = at_end("a")
    core.receive("a", Nack(7, ((8, 1),)), 1.0)
    assert repairs(core, "a") == [8]
    core.receive("a", Nack(7, ((2, 1),)), 1.0)
    assert repairs(core, "a") == [2]


def test_a_stalled_receiver_fails_and_the_other_does_not() -> None:
    core = at_end("a", "b")
    repairs(core, "a")
    repairs(core, "b")
    core.receive("b", Progress(7, 3), 5.5)
    core.tick(6.0)
    assert core.peers["a"].state is PeerState.FAILED
    assert "did not confirm" in core.peers["a"].reason
    core.receive("b", fin(), 6.1)
    assert core.peers["b"].state is PeerState.COMPLETE
    assert core.over


def test_a_receiver_that_does_not_take_its_repairs_fails_in_mid_transfer() -> None:
    core = new_core("a")
    core.receive("a", Ready(7), 0.0)
    core.receive("a", Nack(7, ((0, 9),)), 1.0)
    assert core.deadline() == 1.0
    core.tick(6.0)
    assert "repairs" in core.peers["a"].reason


@pytest.mark.parametrize(
    "message",
    [
        Ready(7),
        Nack(7, ((9, 2),)),
        Nack(7, ((1 << 60, 1 << 60),)),
        Repair(7, 1, b""),
        EndOfData(7, DIGEST),
        HELLO,
        fin(digest=bytes(32)),
        fin(reason="disk full"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_a_receiver_must_not_say_costs_only_that_receiver(message: Message) -> None:
    core = at_end("a", "b")
    repairs(core, "a")
    core.receive("a", message, 1.0)
    assert core.peers["a"].state is PeerState.FAILED
    assert core.peers["a"].reason
    assert core.peers["b"].state is PeerState.READY


def test_done_before_the_end_is_a_lie() -> None:
    core = new_core("a")
    core.receive("a", Ready(7), 0.0)
    core.receive("a", fin(), 0.1)
    assert core.peers["a"].state is PeerState.FAILED


def test_late_messages_of_another_session_are_ignored() -> None:
    core = new_core("a")
    core.receive("a", Fin(6, DIGEST, "old", None, 0, 0), 0.1)
    assert core.peers["a"].state is PeerState.INVITED


def test_endless_questions_have_an_end() -> None:
    core = at_end("a")
    for _ in range(10):
        core.receive("a", Nack(7, ((0, 10),)), 1.0)
        repairs(core, "a")
    assert "4 times" in core.peers["a"].reason


def test_the_heartbeat() -> None:
    core = new_core("a", "b")
    core.lose("b", "gone")
    core.tick(1.0)
    assert said(core) == [("a", Progress(7, 0))]
    assert core.deadline() == 2.0


def test_unicast_owes_everything_from_the_start() -> None:
    core = new_core("a", hello=Hello(7, "f", 95, 10, "", 0))
    core.receive("a", Ready(7), 0.0)
    assert repairs(core, "a") == list(range(10))


# ----------------------------------------------------------------------------------------------- another group


def tuning(*names: str) -> SenderCore:
    core = new_core(*names)
    for name in names:
        core.receive(name, Ready(7), 0.1)
    assert core.take_segment() == 0
    core.tune("239.0.0.2", 81, 5.0)
    assert said(core) == [(name, Tune(7, "239.0.0.2", 81)) for name in names]
    return core


def test_data_goes_on_at_another_group_when_all_have_followed() -> None:
    core = tuning("a", "b")
    core.receive("a", Ready(7), 5.1)
    assert not core.sending
    core.receive("b", Ready(7), 5.2)
    assert core.sending
    assert core.take_segment() == 1


def test_repairs_go_on_meanwhile() -> None:
    core = tuning("a")
    core.receive("a", Nack(7, ((0, 1),)), 5.1)
    assert repairs(core, "a") == [0]
    assert core.peers["a"].state is PeerState.TUNING


def test_who_does_not_follow_is_left_behind() -> None:
    core = tuning("a", "b")
    core.receive("a", Ready(7), 5.1)
    assert core.deadline() is not None
    core.tick(8.0)
    assert core.sending
    assert "follow" in core.peers["b"].reason


def test_a_pause_is_as_long_as_it_likes() -> None:
    """Nothing is owed, so nobody can be late; the heartbeat goes on."""
    core = new_core("a")
    core.receive("a", Ready(7), 0.1)
    core.take_segment()
    for second in range(1, 100):
        core.tick(float(second))
        assert said(core) == [("a", Progress(7, 1))]
    assert core.sending


def test_nobody_is_led_away_before_or_after_the_data() -> None:
    for core in (new_core("a"), at_end("a")):
        with pytest.raises(LocalProtocolError):
            core.tune("239.0.0.2", 81, 1.0)
