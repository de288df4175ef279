"""Messages of the receiver core and their times."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from blast_transport.base.engines import PYTHON
from blast_transport.base.errors import LocalProtocolError
from blast_transport.datagrams.intake import AssemblyIntake
from blast_transport.session.receiver_core import ReceiverCore, ReceiverState, ReceiverTimings
from blast_transport.store.blocks.assembly import Assembly
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.targets.memory_target import MemoryTarget
from blast_transport.wire.messages import Credit, EndOfData, Fin, Hello, Message, Nack, Phase, PhaseReady
from blast_transport.wire.transports import OPTICAL, PIPELINE
from tests.support.transport.transport_data import SUITE, data_of

DATA = data_of(395)
BLOCKS, COUNT = 10, 4
LAST = 4 * 9 + 3
END = EndOfData(7, 395, DATA.whole)
TIMINGS = ReceiverTimings(gather=0.02, quiet=0.02, repeat=0.5, silence=10.0, report=1.0)
HELLO = Hello(7, 395, 10, COUNT, SUITE.name, "memory", "m")


def begun(
    *, transport: str = OPTICAL, credit: int = 4, window: int = BLOCKS, digests_known: bool = True
) -> ReceiverCore:
    store = SessionStore(HELLO.layout, SUITE, MemoryTarget("m", 1 << 20))
    core = ReceiverCore(HELLO, Assembly(store), 0.0, TIMINGS)
    if digests_known:
        store.expect(0, DATA.digests())
    core.phase(Phase(7, 1, transport, 0, credit, window), 0.0)
    assert take_sent(core) == [PhaseReady(7, 1), Credit(7, 0, 0, 0)]
    return core


def take_sent(core: ReceiverCore, *kinds: type[Message]) -> list[Message]:
    messages = [message for message in core.outbox if not kinds or isinstance(message, kinds)]
    core.outbox.clear()
    return messages


def at(core: ReceiverCore, now: float, *kinds: type[Message]) -> list[Message]:
    """Advance the clock of the core, and return the messages that it sends."""
    core.tick(now)
    return take_sent(core, *kinds)


def piece(segment: int, count: int = 1) -> memoryview:
    return memoryview(DATA.content[segment * 10 : (segment + count) * 10])


def arrive(
    core: ReceiverCore, segment: int, count: int, payload: memoryview, began: float, now: float | None = None
) -> None:
    intake = AssemblyIntake(core.assembly)
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


def test_lossless_reception_sends_only_credits() -> None:
    core = begun()
    light(core, *range(40), now=0.1)
    assert take_sent(core) == [Credit(7, 4, 4, 4), Credit(7, 8, 8, 8)]
    core.end_of_data(END, 0.2)
    assert core.state is ReceiverState.COMMITTING and core.due
    assert take_sent(core) == [Credit(7, 10, 10, 10)]
    core.committed()
    assert take_sent(core) == [Fin(7, DATA.whole, "", 0.1, engine=PYTHON)]
    assert core.over and core.deadline() is None


def test_until_credit_counts_segments_to_next_credit() -> None:
    core = begun()
    for segment in range(16):
        assert core.until_credit == 16 - segment and take_sent(core) == []
        light(core, segment)
    assert take_sent(core) == [Credit(7, 4, 4, 4)] and core.until_credit == 16
    assert begun(transport=PIPELINE).until_credit == 0, "a pipeline phase has no credits by segment"


def before_a_hole(credit: int) -> ReceiverCore:
    """Return a core that holds blocks 2 to 7, like holes, with a window of fewer blocks."""
    store = SessionStore(HELLO.layout, SUITE, MemoryTarget("m", 1 << 20))
    for block in range(2, 8):
        store.put(block, DATA.block(block))
    core = ReceiverCore(HELLO, Assembly(store), 0.0, TIMINGS)
    store.expect(0, DATA.digests())
    core.phase(Phase(7, 1, OPTICAL, 0, credit, 3), 0.0)
    assert take_sent(core) == [PhaseReady(7, 1), Credit(7, 0, 0, 6)]
    return core


def test_credit_is_due_before_hole_and_skips_it() -> None:
    core = before_a_hole(credit=3)
    assert core.until_credit == 8, "held blocks do not count"
    light(core, *range(8))
    assert take_sent(core) == [Credit(7, 8, 8, 8)]
    assert core.until_credit == 12 and core.light_end == 11 * COUNT
    light(core, *range(32, LAST + 1))
    core.end_of_data(END, 0.1)
    assert core.state is ReceiverState.COMMITTING


def test_loss_before_hole_does_not_block_data_behind_it() -> None:
    core = before_a_hole(credit=1)
    light(core, *range(3), *range(4, 8))
    assert take_sent(core, Credit) == [Credit(7, 1, 0, 6), Credit(7, 8, 0, 7)]
    assert core.light_end == 11 * COUNT
    assert at(core, 0.03, Nack) == [Nack(7, ((3, 1),))]


def test_losses_of_window_are_requested_with_its_last_credit() -> None:
    core = begun(credit=2)
    light(core, *range(1, 5), *range(6, 21))
    assert take_sent(core) == [Credit(7, 2, 0, 0), Credit(7, 4, 0, 2)]
    light(core, *range(21, 28))
    assert take_sent(core) == [Nack(7, ((0, 1), (5, 1))), Credit(7, 6, 0, 4)]


def test_receiver_requests_no_blocks_that_pipeline_delivers() -> None:
    core = begun()
    light(core, 0, 3, 9)
    core.phase(Phase(7, 2, PIPELINE, 1), 0.001)
    assert take_sent(core, Nack) == [Nack(7, ((1, 2),))]


def test_implausible_jump_is_no_gap() -> None:
    core = begun(credit=1)
    core.assembly.store.layout = core.assembly.store.layout.closed(395 * 1000)
    arrive(core, 30_000, 1, memoryview(bytes(10)), 0.0)
    assert take_sent(core) == []
    light(core, 0, 2)
    assert at(core, 0.02) == [Nack(7, ((1, 1),))]


def test_receiver_left_behind_continues_at_position_of_sender() -> None:
    core = begun(credit=1)
    core.assembly.store.layout = core.assembly.store.layout.closed(395 * 1000)
    core.heartbeat(7500, 0.0)
    arrive(core, 30_000, 1, memoryview(bytes(10)), 0.001)
    assert at(core, 0.021, Nack) == [Nack(7, ((0, 30_000),))]


def test_heartbeat_reveals_loss_without_gap() -> None:
    core = begun()
    light(core, *range(4), now=0.1)
    take_sent(core)
    core.heartbeat(1, 0.11)
    assert at(core, 0.2, Nack) == []
    core.heartbeat(3, 0.3)
    assert at(core, 0.319, Nack) == []
    assert at(core, 0.32, Nack) == [Nack(7, ((4, 8),))]
    assert core.deadline() == pytest.approx(0.82)


def test_credit_answers_heartbeat_at_the_end_of_sent_data() -> None:
    """Without, the sender would wait for the periodic credit to learn that a receiver holds everything."""
    core = begun()
    light(core, *range(20), now=0.1)
    assert take_sent(core) == [Credit(7, 4, 4, 4)]
    core.heartbeat(5, 0.2)
    assert take_sent(core) == [Credit(7, 5, 5, 5)]
    core.heartbeat(5, 0.3)
    assert take_sent(core) == []
    core.heartbeat(6, 0.3)
    light(core, *range(20, 24), now=0.31)
    assert at(core, 0.4) == [Credit(7, 6, 6, 6)]


def test_slow_store_does_not_count_as_quiet_time() -> None:
    core = begun()
    core.heartbeat(3, 0.1)
    arrive(core, 0, 4, piece(0, 4), began=0.1, now=0.5)
    assert at(core, 0.51, Nack) == []


def test_losses_at_end_of_phase_are_requested_in_next_phase() -> None:
    core = begun()
    light(core, 0, 1)
    take_sent(core)
    core.phase(Phase(7, 2, OPTICAL, 2, window=BLOCKS), 1.0)
    assert take_sent(core, PhaseReady) == [PhaseReady(7, 2)]
    light(core, *range(8, 24), now=1.015)
    assert at(core, 1.02, Nack) == [Nack(7, ((2, 6),))]


def test_pipeline_losses_are_requested_only_after_end_of_data() -> None:
    core = begun(transport=PIPELINE)
    core.assembly.store.put(5, DATA.block(5))
    core.progressed(1.0)
    core.heartbeat(9, 1.0)
    assert at(core, 5.0, Nack) == []
    core.end_of_data(END, 5.0)
    assert at(core, 5.02, Nack) == [Nack(7, ((0, 20), (24, 16)))]


def test_nack_is_repeated_until_repaired() -> None:
    core = begun()
    light(core, 0, 2)
    at(core, 0.02)
    assert at(core, 0.499, Nack) == []
    assert at(core, 0.5, Nack) == [Nack(7, ((1, 1),))]
    repair(core, [(1, bytes(piece(1)))], 0.6)
    assert core.repaired == 10
    assert at(core, 1.2, Nack) == []


def test_nack_backoff_restarts_at_end_of_data() -> None:
    core = begun()
    light(core, 0, 2)
    asked = []
    for step in range(1000):
        core.tick(step * 0.01)
        core.heartbeat(0, step * 0.01)
        asked += [step * 0.01] * len(take_sent(core, Nack))
    assert asked == pytest.approx([0.02, 0.5, 1.0, 2.0, 4.0, 8.0])
    core.end_of_data(END, 10.0)
    at(core, 10.02)
    assert at(core, 10.5, Nack) == []
    assert at(core, 10.52, Nack) == [Nack(7, ((1, 1), (3, 37)))]


def test_end_of_data_requests_all_missing_segments_again() -> None:
    """A repair by multicast may have been lost as well."""
    core = begun()
    light(core, 0, 2)
    at(core, 0.02)
    arrive(core, 3, 37, piece(3, 37), 0.01)
    core.end_of_data(END, 0.02)
    assert at(core, 0.039, Nack) == []
    assert at(core, 0.04, Nack) == [Nack(7, ((1, 1),))]


def test_wrong_block_is_requested_again_at_once() -> None:
    core = begun()
    arrive(core, 0, 4, memoryview(bytes(40)), 0.1)
    assert take_sent(core, Nack) == [Nack(7, ((0, 4),))]
    core = begun(digests_known=False)
    arrive(core, 0, 4, memoryview(bytes(40)), 0.1)
    core.assembly.store.expect(0, DATA.digests())
    core.stored(0.2)
    core.wrong(core.assembly.take_wrong(), 0.2)
    assert take_sent(core, Nack) == [Nack(7, ((0, 4),))]


def test_replayed_datagrams_delay_neither_nack_nor_timeout() -> None:
    core = begun()
    light(core, 0, 1)
    core.end_of_data(END, 0.0)
    take_sent(core)
    light(core, 0, 1, now=0.019)
    assert at(core, 0.02, Nack) == [Nack(7, ((2, 38),))]
    light(core, 0, now=9.9)
    core.tick(10.0)
    assert core.state is ReceiverState.FAILED
    assert "10 blocks were not repaired" in core.reason


def test_heartbeats_alone_do_not_keep_session_alive() -> None:
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


def test_receiver_sends_credit_periodically() -> None:
    core = begun()
    assert at(core, 0.9) == []
    core.tick(1.0)
    assert at(core, 1.5) == [Credit(7, 0, 0, 0)]


def test_failed_receiver_ignores_all_input() -> None:
    core = begun()
    core.fail("disk full")
    assert take_sent(core, Fin) == [Fin(7, b"", "disk full")]
    core.fail("again")
    light(core, 0)
    repair(core, [(1, bytes(piece(1)))], 1.0)
    assert at(core, 100.0) == [] and core.reason == "disk full"


def test_second_end_of_data_raises_local_error() -> None:
    core = begun()
    core.end_of_data(END, 0.0)
    with pytest.raises(LocalProtocolError):
        core.end_of_data(END, 0.0)


def test_many_gaps_are_split_into_several_nacks() -> None:
    data = data_of(50_000)
    hello = Hello(7, 50_000, 10, COUNT, SUITE.name, "memory", "m")
    core = ReceiverCore(hello, Assembly(SessionStore(hello.layout, SUITE, MemoryTarget("m", 1 << 20))), 0.0, TIMINGS)
    for segment in range(0, 5000, 2):
        repair(core, [(segment, data.content[segment * 10 : segment * 10 + 10])], 0.0)
    take_sent(core)
    core.end_of_data(EndOfData(7, 50_000, bytes(32)), 0.0)
    core.tick(0.5)
    nacks = [message for message in take_sent(core, Nack) if isinstance(message, Nack)]
    assert max(len(nack.ranges) for nack in nacks) <= 1024
    assert sorted({asked for nack in nacks for asked in nack.ranges}) == [(s, 1) for s in range(1, 5000, 2)]


def opened(core: ReceiverCore) -> set[int]:
    """Return the blocks with at least one segment."""
    missing = {s for first, number in core.assembly.missing(0, LAST + 1) for s in range(first, first + number)}
    return {segment // COUNT for segment in set(range(LAST + 1)) - missing}


def test_datagrams_beyond_window_are_ignored() -> None:
    core = begun(credit=1, window=2)
    light(core, 2 * COUNT, 9 * COUNT)
    assert opened(core) == set() and core.assembly.refused == 2
    light(core, COUNT)
    assert take_sent(core, Credit) == [Credit(7, 1, 0, 0)]
    light(core, 3 * COUNT)
    assert opened(core) == {1} and core.assembly.refused == 3
    light(core, 2 * COUNT)
    assert opened(core) == {1, 2}


def test_datagrams_beyond_heartbeat_position_are_ignored() -> None:
    core = begun(credit=1, window=2)
    core.heartbeat(5, 0.0)
    light(core, 7 * COUNT)
    assert opened(core) == set()
    light(core, 6 * COUNT)
    assert opened(core) == {6}


def test_forged_segments_behind_last_block_are_ignored() -> None:
    """They have the sender's own address; the receiver must not request such segments."""
    hello = Hello(7, 325, 10, 10, SUITE.name, "memory", "m")
    core = ReceiverCore(hello, Assembly(SessionStore(hello.layout, SUITE, MemoryTarget("m", 1 << 20))), 0.0, TIMINGS)
    core.phase(Phase(7, 1, OPTICAL, 3, 4, BLOCKS), 0.0)
    for segment in (30, 35, 38):
        arrive(core, segment, 1, memoryview(bytes(10)), 0.0)
    assert core.assembly.refused == 2
    core.tick(1.0)
    assert all(asked[0] + asked[1] <= 33 for nack in take_sent(core, Nack) for asked in nack.ranges)  # type: ignore[attr-defined]


def test_demoted_receiver_accepts_datagrams_beyond_window() -> None:
    core = begun(credit=1, window=1)
    core.demoted(0.0)
    light(core, 8 * COUNT)
    assert opened(core) == {8}
    core.promoted(0.0)
    light(core, 9 * COUNT)
    assert opened(core) == {8}


def test_receiver_without_sender_accepts_datagrams_beyond_window() -> None:
    core = begun(credit=1, window=1)
    core.cut_off()
    light(core, 8 * COUNT)
    assert opened(core) == {8}
    core.come_again(0.0)
    light(core, 9 * COUNT)
    assert opened(core) == {8}


def test_idle_receiver_sleeps_until_deadline() -> None:
    core = begun()
    for _ in range(50):
        now = core.deadline()
        assert now is not None
        core.tick(now)
        if core.over:
            break
        assert core.deadline() > now  # type: ignore[operator]
    assert core.over and "no message" in core.reason
