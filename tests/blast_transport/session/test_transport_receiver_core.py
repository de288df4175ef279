"""What a receiver says, and when."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from blast_transport.base.engines import PYTHON
from blast_transport.base.errors import LocalProtocolError
from blast_transport.session.receiver_core import ReceiverCore, ReceiverState, ReceiverTimings
from blast_transport.store.blocks.assembly import Assembly
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.targets.memory_target import MemoryTarget
from blast_transport.transports.optical.light_intake import LightIntake
from blast_transport.wire.messages import Credit, EndOfData, Fin, Hello, Message, Nack, Phase, PhaseReady
from blast_transport.wire.transports import OPTICAL, PIPELINE
from tests.support.transport_data import SUITE, data_of

DATA = data_of(395)
BLOCKS, COUNT = 10, 4
LAST = 4 * 9 + 3
END = EndOfData(7, 395, DATA.whole)
TIMINGS = ReceiverTimings(gather=0.02, quiet=0.02, repeat=0.5, silence=10.0, report=1.0)
HELLO = Hello(7, 395, 10, COUNT, SUITE.name, "memory", "m")


def begun(*, transport: str = OPTICAL, credit: int = 4, window: int = BLOCKS, told: bool = True) -> ReceiverCore:
    store = SessionStore(HELLO.layout, SUITE, MemoryTarget("m", 1 << 20))
    core = ReceiverCore(HELLO, Assembly(store), 0.0, TIMINGS)
    if told:
        store.expect(0, DATA.digests())
    core.phase(Phase(7, 1, transport, 0, credit, window), 0.0)
    assert said(core) == [PhaseReady(7, 1), Credit(7, 0, 0, 0)]
    return core


def said(core: ReceiverCore, *kinds: type[Message]) -> list[Message]:
    messages = [message for message in core.outbox if not kinds or isinstance(message, kinds)]
    core.outbox.clear()
    return messages


def at(core: ReceiverCore, now: float, *kinds: type[Message]) -> list[Message]:
    """Let the core look at the clock; return what it says then."""
    core.tick(now)
    return said(core, *kinds)


def piece(segment: int, count: int = 1) -> memoryview:
    return memoryview(DATA.content[segment * 10 : (segment + count) * 10])


def arrive(
    core: ReceiverCore, segment: int, count: int, payload: memoryview, began: float, now: float | None = None
) -> None:
    intake = LightIntake(core.assembly)
    intake.stop = core.light_end
    intake.take([(segment, count, payload)])
    core.arrived(intake.arrived(began), began if now is None else now)
    core.wrong(core.assembly.take_wrong(), began if now is None else now)


def repair(core: ReceiverCore, rows: Iterable[tuple[int, bytes]], now: float) -> None:
    core.repaired_by(core.assembly.repair(rows) if core.receiving else 0, now)
    core.wrong(core.assembly.take_wrong(), now)


def light(core: ReceiverCore, *segments: int, now: float = 0.0) -> None:
    for segment in segments:
        arrive(core, segment, 1, piece(segment), now)


def test_in_order_without_loss_says_only_how_far_it_is() -> None:
    core = begun()
    light(core, *range(40), now=0.1)
    assert said(core) == [Credit(7, 4, 4, 4), Credit(7, 8, 8, 8)]
    core.end_of_data(END, 0.2)
    assert core.state is ReceiverState.COMMITTING and core.due
    assert said(core) == [Credit(7, 10, 10, 10)]
    core.committed()
    assert said(core) == [Fin(7, DATA.whole, "", 0.1, engine=PYTHON)]
    assert core.over and core.deadline() is None


def test_how_much_may_come_before_a_credit_is_due() -> None:
    core = begun()
    for segment in range(16):
        assert core.until_credit == 16 - segment and said(core) == []
        light(core, segment)
    assert said(core) == [Credit(7, 4, 4, 4)] and core.until_credit == 16
    assert begun(transport=PIPELINE).until_credit == 0, "by a chain nothing is passed over"


def before_a_hole(credit: int) -> ReceiverCore:
    """Blocks 2 to 7 were held before, as holes are, and the window is smaller than they are."""
    store = SessionStore(HELLO.layout, SUITE, MemoryTarget("m", 1 << 20))
    for block in range(2, 8):
        store.put(block, DATA.block(block))
    core = ReceiverCore(HELLO, Assembly(store), 0.0, TIMINGS)
    store.expect(0, DATA.digests())
    core.phase(Phase(7, 1, OPTICAL, 0, credit, 3), 0.0)
    assert said(core) == [PhaseReady(7, 1), Credit(7, 0, 0, 6)]
    return core


def test_credit_is_due_before_a_hole_and_passes_over_it() -> None:
    core = before_a_hole(credit=3)
    assert core.until_credit == 8, "what does not come is not waited for"
    light(core, *range(8))
    assert said(core) == [Credit(7, 8, 8, 8)]
    assert core.until_credit == 12 and core.light_end == 11 * COUNT
    light(core, *range(32, LAST + 1))
    core.end_of_data(END, 0.1)
    assert core.state is ReceiverState.COMMITTING


def test_loss_before_a_hole_does_not_hold_up_what_lies_behind_it() -> None:
    core = before_a_hole(credit=1)
    light(core, *range(3), *range(4, 8))
    assert said(core, Credit) == [Credit(7, 1, 0, 6), Credit(7, 8, 0, 7)]
    assert core.light_end == 11 * COUNT
    assert at(core, 0.03, Nack) == [Nack(7, ((3, 1),))]


def test_the_losses_of_a_window_are_asked_for_with_its_last_credit() -> None:
    core = begun(credit=2)
    light(core, *range(1, 5), *range(6, 21))
    assert said(core) == [Credit(7, 2, 0, 0), Credit(7, 4, 0, 2)]
    light(core, *range(21, 28))
    assert said(core) == [Nack(7, ((0, 1), (5, 1))), Credit(7, 6, 0, 4)]


def test_what_a_chain_will_bring_is_not_asked_for() -> None:
    core = begun()
    light(core, 0, 3, 9)
    core.phase(Phase(7, 2, PIPELINE, 1), 0.001)
    assert said(core, Nack) == [Nack(7, ((1, 2),))]


def test_a_jump_that_no_sender_makes_is_no_gap() -> None:
    core = begun(credit=1)
    core.assembly.store.layout = core.assembly.store.layout.closed(395 * 1000)
    arrive(core, 30_000, 1, memoryview(bytes(10)), 0.0)
    assert said(core) == []
    light(core, 0, 2)
    assert at(core, 0.02) == [Nack(7, ((1, 1),))]


def test_who_was_left_behind_begins_again_where_the_sender_is() -> None:
    core = begun(credit=1)
    core.assembly.store.layout = core.assembly.store.layout.closed(395 * 1000)
    core.heartbeat(7500, 0.0)
    arrive(core, 30_000, 1, memoryview(bytes(10)), 0.001)
    assert at(core, 0.021, Nack) == [Nack(7, ((0, 30_000),))]


def test_the_senders_word_shows_a_loss_that_no_gap_does() -> None:
    core = begun()
    light(core, *range(4), now=0.1)
    said(core)
    core.heartbeat(1, 0.11)
    assert at(core, 0.2, Nack) == []
    core.heartbeat(3, 0.3)
    assert at(core, 0.319, Nack) == []
    assert at(core, 0.32, Nack) == [Nack(7, ((4, 8),))]
    assert core.deadline() == pytest.approx(0.82)


def test_a_store_that_took_long_had_no_quiet_moment() -> None:
    core = begun()
    core.heartbeat(3, 0.1)
    arrive(core, 0, 4, piece(0, 4), began=0.1, now=0.5)
    assert at(core, 0.51, Nack) == []


def test_what_light_lost_at_its_end_is_asked_for_when_another_has_begun() -> None:
    core = begun()
    light(core, 0, 1)
    said(core)
    core.phase(Phase(7, 2, OPTICAL, 2, window=BLOCKS), 1.0)
    assert said(core, PhaseReady) == [PhaseReady(7, 2)]
    light(core, *range(8, 24), now=1.015)
    assert at(core, 1.02, Nack) == [Nack(7, ((2, 6),))]


def test_a_pipeline_is_not_asked_but_when_all_has_ended() -> None:
    core = begun(transport=PIPELINE)
    core.assembly.store.put(5, DATA.block(5))
    core.progressed(1.0)
    core.heartbeat(9, 1.0)
    assert at(core, 5.0, Nack) == []
    core.end_of_data(END, 5.0)
    assert at(core, 5.02, Nack) == [Nack(7, ((0, 20), (24, 16)))]


def test_unanswered_questions_are_repeated_until_repaired() -> None:
    core = begun()
    light(core, 0, 2)
    at(core, 0.02)
    assert at(core, 0.499, Nack) == []
    assert at(core, 0.5, Nack) == [Nack(7, ((1, 1),))]
    repair(core, [(1, bytes(piece(1)))], 0.6)
    assert core.repaired == 10
    assert at(core, 1.2, Nack) == []


def test_questions_that_are_not_answered_become_rare_and_frequent_again_at_the_end() -> None:
    core = begun()
    light(core, 0, 2)
    asked = []
    for step in range(1000):
        core.tick(step * 0.01)
        core.heartbeat(0, step * 0.01)
        asked += [step * 0.01] * len(said(core, Nack))
    assert asked == pytest.approx([0.02, 0.5, 1.0, 2.0, 4.0, 8.0])
    core.end_of_data(END, 10.0)
    at(core, 10.02)
    assert at(core, 10.5, Nack) == []
    assert at(core, 10.52, Nack) == [Nack(7, ((1, 1), (3, 37)))]


def test_at_the_end_all_that_is_missing_is_asked_for_once_more() -> None:
    """What was repaired by light for several may have been lost again."""
    core = begun()
    light(core, 0, 2)
    at(core, 0.02)
    arrive(core, 3, 37, piece(3, 37), 0.01)
    core.end_of_data(END, 0.02)
    assert at(core, 0.039, Nack) == []
    assert at(core, 0.04, Nack) == [Nack(7, ((1, 1),))]


def test_a_wrong_block_is_asked_for_again_at_once() -> None:
    core = begun()
    arrive(core, 0, 4, memoryview(bytes(40)), 0.1)
    assert said(core, Nack) == [Nack(7, ((0, 4),))]
    core = begun(told=False)
    arrive(core, 0, 4, memoryview(bytes(40)), 0.1)
    core.assembly.store.expect(0, DATA.digests())
    core.stored(0.2)
    core.wrong(core.assembly.take_wrong(), 0.2)
    assert said(core, Nack) == [Nack(7, ((0, 4),))]


def test_replayed_datagrams_neither_put_the_question_off_nor_keep_a_session_alive() -> None:
    core = begun()
    light(core, 0, 1)
    core.end_of_data(END, 0.0)
    said(core)
    light(core, 0, 1, now=0.019)
    assert at(core, 0.02, Nack) == [Nack(7, ((2, 38),))]
    light(core, 0, now=9.9)
    core.tick(10.0)
    assert core.state is ReceiverState.FAILED
    assert "10 blocks were not repaired" in core.reason


def test_words_alone_do_not_keep_a_transfer_alive_that_gets_nothing_new() -> None:
    core = begun()
    core.end_of_data(END, 1.0)
    for second in range(2, 61):
        core.heartbeat(10, float(second))
        core.tick(float(second))
        assert core.state is ReceiverState.ENDING, "the sender may have others to serve"
    core.heartbeat(10, 61.0)
    core.tick(61.0)
    assert core.state is ReceiverState.FAILED
    assert core.reason == "10 blocks were not repaired: nothing new for 60 s"


def test_signs_of_life_come_by_the_clock() -> None:
    core = begun()
    assert at(core, 0.9) == []
    core.tick(1.0)
    assert at(core, 1.5) == [Credit(7, 0, 0, 0)]


def test_after_the_end_everything_is_ignored() -> None:
    core = begun()
    core.fail("disk full")
    assert said(core, Fin) == [Fin(7, b"", "disk full")]
    core.fail("again")
    light(core, 0)
    repair(core, [(1, bytes(piece(1)))], 1.0)
    assert at(core, 100.0) == [] and core.reason == "disk full"


def test_end_of_data_twice_is_a_typed_error() -> None:
    core = begun()
    core.end_of_data(END, 0.0)
    with pytest.raises(LocalProtocolError):
        core.end_of_data(END, 0.0)


def test_many_gaps_are_split_over_several_questions() -> None:
    data = data_of(50_000)
    hello = Hello(7, 50_000, 10, COUNT, SUITE.name, "memory", "m")
    core = ReceiverCore(hello, Assembly(SessionStore(hello.layout, SUITE, MemoryTarget("m", 1 << 20))), 0.0, TIMINGS)
    for segment in range(0, 5000, 2):
        repair(core, [(segment, data.content[segment * 10 : segment * 10 + 10])], 0.0)
    said(core)
    core.end_of_data(EndOfData(7, 50_000, bytes(32)), 0.0)
    core.tick(0.5)
    nacks = [message for message in said(core, Nack) if isinstance(message, Nack)]
    assert max(len(nack.ranges) for nack in nacks) <= 1024
    assert sorted({asked for nack in nacks for asked in nack.ranges}) == [(s, 1) for s in range(1, 5000, 2)]


def opened(core: ReceiverCore) -> set[int]:
    """Blocks of which something is here."""
    missing = {s for first, number in core.assembly.missing(0, LAST + 1) for s in range(first, first + number)}
    return {segment // COUNT for segment in set(range(LAST + 1)) - missing}


def test_light_that_cannot_have_been_sent_yet_opens_nothing() -> None:
    core = begun(credit=1, window=2)
    light(core, 2 * COUNT, 9 * COUNT)
    assert opened(core) == set() and core.assembly.refused == 2
    light(core, COUNT)
    assert said(core, Credit) == [Credit(7, 1, 0, 0)]
    light(core, 3 * COUNT)
    assert opened(core) == {1} and core.assembly.refused == 3
    light(core, 2 * COUNT)
    assert opened(core) == {1, 2}


def test_light_beyond_what_the_sender_says_that_it_sent_opens_nothing() -> None:
    core = begun(credit=1, window=2)
    core.heartbeat(5, 0.0)
    light(core, 7 * COUNT)
    assert opened(core) == set()
    light(core, 6 * COUNT)
    assert opened(core) == {6}


def test_forged_light_behind_the_end_of_the_last_block_harms_nobody() -> None:
    """From the sender's own address: no segment is there that could be asked for."""
    hello = Hello(7, 325, 10, 10, SUITE.name, "memory", "m")
    core = ReceiverCore(hello, Assembly(SessionStore(hello.layout, SUITE, MemoryTarget("m", 1 << 20))), 0.0, TIMINGS)
    core.phase(Phase(7, 1, OPTICAL, 3, 4, BLOCKS), 0.0)
    for segment in (30, 35, 38):
        arrive(core, segment, 1, memoryview(bytes(10)), 0.0)
    assert core.assembly.refused == 2
    core.tick(1.0)
    assert all(asked[0] + asked[1] <= 33 for nack in said(core, Nack) for asked in nack.ranges)  # type: ignore[attr-defined]


def test_a_sender_that_waits_for_us_no_more_may_be_anywhere() -> None:
    core = begun(credit=1, window=1)
    core.demoted(0.0)
    light(core, 8 * COUNT)
    assert opened(core) == {8}
    core.promoted(0.0)
    light(core, 9 * COUNT)
    assert opened(core) == {8}


def test_a_sender_that_is_lost_goes_on_without_us_until_it_comes_again() -> None:
    core = begun(credit=1, window=1)
    core.cut_off()
    light(core, 8 * COUNT)
    assert opened(core) == {8}
    core.come_again(0.0)
    light(core, 9 * COUNT)
    assert opened(core) == {8}


def test_who_waits_for_light_sleeps() -> None:
    core = begun()
    for _ in range(50):
        now = core.deadline()
        assert now is not None
        core.tick(now)
        if core.over:
            break
        assert core.deadline() > now  # type: ignore[operator]
    assert core.over and "no message" in core.reason
