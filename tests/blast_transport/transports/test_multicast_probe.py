"""Probe of a multicast group: receivers that it reaches, in virtual time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_transport.transports.multicast.probe import GroupProbe, ProbeEvent, ProbeState


def sent_to(*names: str) -> GroupProbe:
    probe = GroupProbe()
    probe.expect(names)
    probe.left(10.0)
    return probe


def test_probe_ends_with_the_last_answer() -> None:
    probe = sent_to("a", "b")
    probe.answer("a")
    assert probe.take_event(10.001) is None
    probe.answer("b")
    assert probe.take_event(10.002) is ProbeEvent.ALL_ANSWERED
    assert probe.decided and probe.reaches_any and not probe.unanswered
    assert probe.take_event(99.0) is None


def test_probe_is_repeated_once_and_ends_without_answers() -> None:
    probe = sent_to("a", "b")
    assert probe.take_event(10.049) is None
    assert probe.take_event(10.051) is ProbeEvent.REPEAT_DUE
    assert probe.take_event(10.06) is None
    probe.answer("b")
    assert probe.take_event(10.199) is None and not probe.decided
    assert probe.take_event(10.201) is ProbeEvent.ANSWERS_OVERDUE
    assert probe.unanswered == {"a"} and probe.reaches_any


def test_probe_that_is_late_is_not_repeated() -> None:
    probe = sent_to("a")
    assert probe.take_event(11.0) is ProbeEvent.ANSWERS_OVERDUE
    assert probe.unanswered == {"a"} and not probe.reaches_any


def test_nothing_is_due_before_the_first_segment() -> None:
    probe = GroupProbe()
    probe.expect({"a"})
    assert probe.take_event(99.0) is None and probe.state is ProbeState.WAITING


def test_receiver_that_is_lost_is_not_awaited() -> None:
    probe = sent_to("a", "b")
    probe.answer("a")
    probe.answer("outsider")
    probe.expect({"a"})
    assert probe.take_event(10.01) is ProbeEvent.ALL_ANSWERED


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", "wait", "left"]), st.floats(0.0, 0.1)), max_size=40))
def test_probe_ends_within_its_time_in_any_sequence(steps: list[tuple[str, float]]) -> None:
    probe, now, left_at, events = GroupProbe(), 0.0, None, list[ProbeEvent]()
    probe.expect({"a", "b"})
    answered: set[str] = set()
    for step, seconds in steps:
        now += seconds
        if step == "left":
            left_at = now if left_at is None else left_at
            probe.left(now)
        elif step != "wait":
            answered.add(step)
            probe.answer(step)
        if (event := probe.take_event(now)) is not None:
            events.append(event)
        due = left_at is not None and (now >= left_at + 0.2 or answered >= {"a", "b"})
        assert probe.decided or not due
        assert events.count(ProbeEvent.REPEAT_DUE) <= 1 and len(events) <= 2
