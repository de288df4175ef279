from __future__ import annotations

import pytest

from blast_transport.control import EndOfData, Fin, Hello, Message, Nack, Progress, Ready
from blast_transport.errors import LocalProtocolError
from blast_transport.receiver_core import ReceiverCore, ReceiverState, ReceiverTimings

HELLO = Hello(7, "f", 95, 10, "239.0.0.1", 80)
LAST = HELLO.segments - 1
DIGEST = bytes(range(32))
TIMINGS = ReceiverTimings(quiet=0.02, repeat=0.5, silence=10.0, report=1.0)


def new_core(hello: Hello = HELLO) -> ReceiverCore:
    core = ReceiverCore(hello, 0.0, TIMINGS)
    assert said(core) == [Ready(hello.session)]
    return core


def said(core: ReceiverCore) -> list[Message]:
    messages = list(core.outbox)
    core.outbox.clear()
    return messages


def light(core: ReceiverCore, *segments: int, now: float = 0.0) -> list[bool]:
    return [core.datagram(segment, HELLO.length(segment), now) for segment in segments]


def test_in_order_without_loss_says_nothing_until_fin() -> None:
    core = new_core()
    assert all(light(core, *range(HELLO.segments)))
    assert core.contiguous == HELLO.segments
    core.end_of_data(EndOfData(7, DIGEST), 0.1)
    assert core.state is ReceiverState.VERIFYING
    assert said(core) == []
    core.stored()
    assert said(core) == [Fin(7, DIGEST, "", 0.0, 0, 0)]
    assert core.state is ReceiverState.COMPLETE
    assert core.deadline() is None


def test_a_jump_is_asked_for_at_once() -> None:
    core = new_core()
    light(core, 0, 3)
    assert said(core) == [Nack(7, ((1, 2),))]
    light(core, 4, 6)
    assert said(core) == [Nack(7, ((5, 1),))]
    assert core.contiguous == 1


def test_the_tail_is_asked_for_after_a_quiet_moment() -> None:
    core = new_core()
    light(core, *range(5), now=1.0)
    core.end_of_data(EndOfData(7, DIGEST), 1.01)
    assert core.deadline() == pytest.approx(1.03)
    core.tick(1.025)
    assert said(core) == []
    core.tick(1.03)
    assert said(core) == [Nack(7, ((5, 5),))]


def test_replayed_datagrams_neither_put_the_question_off_nor_keep_a_session_alive() -> None:
    core = new_core()
    light(core, 0, 1)
    core.end_of_data(EndOfData(7, DIGEST), 0.0)
    light(core, 0, 1, now=0.019)
    core.tick(0.02)
    assert said(core) == [Nack(7, ((2, 8),))]
    light(core, 0, now=9.9)
    core.tick(10.0)
    assert core.state is ReceiverState.FAILED


def test_late_datagrams_after_end_of_data_put_the_question_off() -> None:
    core = new_core()
    core.end_of_data(EndOfData(7, DIGEST), 0.0)
    light(core, 0, now=0.015)
    core.tick(0.03)
    assert said(core) == []
    light(core, *range(1, 10), now=0.031)
    assert core.state is ReceiverState.ENDING
    core.check_complete()
    assert core.state is ReceiverState.VERIFYING
    assert said(core) == []


def test_unanswered_questions_are_repeated_until_repaired() -> None:
    core = new_core()
    light(core, 0, 2)
    said(core)
    core.tick(0.4)
    assert said(core) == []
    core.tick(0.5)
    assert said(core) == [Nack(7, ((1, 1),))]
    assert core.repair(1, 10, 0.6)
    assert core.repaired_bytes == 10
    core.tick(1.0)
    assert not any(isinstance(message, Nack) for message in said(core))


def test_a_running_repair_puts_the_repetition_off() -> None:
    core = new_core()
    light(core, 0, 4)
    said(core)
    core.repair(1, 10, 0.45)
    core.tick(0.6)
    assert said(core) == []


def test_duplicates_and_malformed_segments_are_counted_and_ignored() -> None:
    core = new_core()
    assert light(core, 0, 0) == [True, False]
    assert not core.datagram(10, 10, 0.0)
    assert not core.datagram(1 << 63, 10, 0.0)
    assert not core.datagram(1, 9, 0.0)
    assert not core.datagram(LAST, 10, 0.0)
    assert (core.duplicates, core.malformed) == (1, 4)
    assert core.first_datagram == 0.0
    assert core.held.held == 1
    assert said(core) == []


def test_progress_is_reported_once_a_second_and_only_if_there_is_some() -> None:
    core = new_core()
    light(core, 0, 1)
    core.tick(0.9)
    assert said(core) == []
    core.tick(1.0)
    assert said(core) == [Progress(7, 2)]
    core.tick(2.5)
    assert said(core) == []


def test_silence_ends_it() -> None:
    core = new_core()
    core.progress(5.0)
    core.tick(14.9)
    assert not core.over
    core.tick(15.0)
    assert core.state is ReceiverState.FAILED
    (fin,) = said(core)
    assert isinstance(fin, Fin)
    assert "nothing heard" in fin.reason


def test_words_alone_do_not_keep_a_transfer_alive_that_gets_nothing_new() -> None:
    core = new_core()
    light(core, 0)
    core.end_of_data(EndOfData(7, DIGEST), 1.0)
    for second in range(2, 12):
        core.progress(float(second))
        core.tick(float(second))
    assert core.state is ReceiverState.FAILED
    assert "9 segments were not repaired" in core.reason


def test_an_empty_file_is_complete_at_end_of_data() -> None:
    core = new_core(Hello(7, "f", 0, 10, "239.0.0.1", 80))
    core.end_of_data(EndOfData(7, DIGEST), 0.0)
    assert core.state is ReceiverState.VERIFYING


def test_after_the_end_everything_is_ignored() -> None:
    core = new_core()
    core.fail("disk full")
    said(core)
    core.fail("again")
    assert light(core, 0) == [False]
    core.tick(100.0)
    assert said(core) == []
    assert core.reason == "disk full"


def test_end_of_data_twice_is_a_typed_error() -> None:
    core = new_core()
    core.end_of_data(EndOfData(7, DIGEST), 0.0)
    with pytest.raises(LocalProtocolError):
        core.end_of_data(EndOfData(7, DIGEST), 0.0)


def test_unicast_segments_are_no_repairs() -> None:
    core = new_core(Hello(7, "f", 95, 10, "", 0))
    assert core.repair(0, 10, 0.0)
    assert core.repaired_bytes == 0
    assert core.first_datagram is None


def test_many_gaps_are_split_over_several_nacks() -> None:
    core = new_core(Hello(7, "f", 5000, 1, "239.0.0.1", 80))
    for segment in range(0, 5000, 2):
        core.repair(segment, 1, 0.0)
    said(core)
    core.end_of_data(EndOfData(7, DIGEST), 0.0)
    core.tick(0.5)
    nacks = [message for message in said(core) if isinstance(message, Nack)]
    asked = [asked for nack in nacks for asked in nack.ranges]
    assert max(len(nack.ranges) for nack in nacks) <= 1024
    assert sorted(set(asked)) == [(segment, 1) for segment in range(1, 5000, 2)]
