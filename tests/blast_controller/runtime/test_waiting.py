"""The waiting room: answers to events, timeouts and cancelled waits."""

from __future__ import annotations

import math

import pytest

from blast_controller.core.model.errors import RequestEndedError, RequestTimeoutError
from blast_controller.core.model.requests import EventKind, RequestEvent
from blast_controller.runtime.waiting import Wait, WaitingRoom

KEY, OTHER = ("default", "a"), ("default", "b")
GRANTED, ENDED = RequestEvent(1, EventKind.GRANTED, 0), RequestEvent(2, EventKind.ENDED, 0)


def park(room, key=KEY, deadline=10.0, accepts=lambda event: True, answer=lambda event: event.sequence):
    return room.park(key, deadline, Wait(accepts, answer, lambda: RequestTimeoutError("Nothing yet.")))


def notify(room, key, event):
    room.notify(key, event)
    room.serve()


def expired(room, now):
    room.expire(now)
    room.serve()


def test_event_answers_every_wait_that_accepts_it():
    room = WaitingRoom()
    first, second = park(room), park(room, accepts=lambda event: event.kind is EventKind.ENDED)
    other = park(room, key=OTHER)
    notify(room, KEY, GRANTED)
    assert first.result(0) == 1
    assert not second.done()
    notify(room, KEY, ENDED)
    assert second.result(0) == 2
    assert not other.done()
    assert room.next_deadline() == 10.0


def test_answer_may_raise_an_error():
    def refuse(event):
        raise RequestEndedError("done", "It is over.")

    room = WaitingRoom()
    future = park(room, answer=refuse)
    notify(room, KEY, ENDED)
    with pytest.raises(RequestEndedError, match="It is over"):
        future.result(0)


def test_each_wait_times_out_at_its_own_deadline():
    room = WaitingRoom()
    early, late = park(room, deadline=1.0), park(room, deadline=2.0)
    assert room.next_deadline() == 1.0
    expired(room, 0.9)
    assert not early.done()
    expired(room, 1.0)
    with pytest.raises(RequestTimeoutError):
        early.result(0)
    assert not late.done()
    assert room.next_deadline() == 2.0
    expired(room, 5.0)
    assert isinstance(late.exception(0), RequestTimeoutError)
    assert room.next_deadline() is None


def test_cancelled_wait_is_neither_answered_nor_kept():
    room = WaitingRoom()
    cancelled, stays = park(room), park(room)
    assert cancelled.cancel()
    notify(room, KEY, GRANTED)
    assert cancelled.cancelled()
    assert stays.result(0) == 1
    leaving = park(room, deadline=1.0)
    leaving.cancel()
    expired(room, 0.0)
    assert room.next_deadline() is None


def test_event_is_not_offered_to_waits_for_later_events():
    room, asked = WaitingRoom(), []

    def accepts(event):
        asked.append(event.sequence)
        return event.sequence > 1

    far = [
        room.park(KEY, 10.0, Wait(accepts, lambda event: event.sequence, None, after=after)) for after in range(1, 9)
    ]
    near = park(room)
    room.notify(KEY, GRANTED, GRANTED.sequence)
    room.serve()
    assert near.done()
    assert asked == []
    room.notify(KEY, ENDED, ENDED.sequence)
    room.serve()
    assert asked == [2]
    assert [future.done() for future in far] == [True] + 7 * [False]


def test_last_event_answers_waits_for_later_events():
    room = WaitingRoom()
    waits = room.park(KEY, 10.0, Wait(lambda event: True, lambda event: event.kind, None, after=1 << 40))
    room.notify(KEY, ENDED, math.inf)
    room.serve()
    assert waits.result(0) is EventKind.ENDED


def test_wait_for_the_last_event_ignores_the_end_of_another_part():
    room = WaitingRoom()
    waits = room.park(KEY, 10.0, Wait(lambda event: False, lambda event: event.kind, None, or_last=True))
    room.notify(KEY, ENDED, ENDED.sequence)
    room.serve()
    assert not waits.done(), "another part still waits"
    room.notify(KEY, ENDED, math.inf)
    room.serve()
    assert waits.result(0) is EventKind.ENDED
