"""The waiting room: who is answered by which event, who is sent away, and who has left."""

from __future__ import annotations

import math

import pytest

from blast_controller.core.model.errors import RequestEndedError, RequestTimeoutError
from blast_controller.core.model.requests import EventKind, RequestEvent
from blast_controller.runtime.waiting import Wait, WaitingRoom

KEY, OTHER = ("default", "a"), ("default", "b")
GRANTED, ENDED = RequestEvent(1, EventKind.GRANTED, 0), RequestEvent(2, EventKind.ENDED, 0)


def park(room, key=KEY, deadline=10.0, wanted=lambda event: True, answer=lambda event: event.sequence):
    return room.park(key, deadline, Wait(wanted, answer, lambda: RequestTimeoutError("Nothing yet.")))


def told(room, key, event):
    room.notify(key, event)
    room.serve()


def expired(room, now):
    room.expire(now)
    room.serve()


def test_an_event_answers_everyone_who_wants_it():
    room = WaitingRoom()
    first, second = park(room), park(room, wanted=lambda event: event.kind is EventKind.ENDED)
    stranger = park(room, key=OTHER)
    told(room, KEY, GRANTED)
    assert first.result(0) == 1
    assert not second.done()
    told(room, KEY, ENDED)
    assert second.result(0) == 2
    assert not stranger.done()
    assert room.next_deadline() == 10.0


def test_an_answer_may_be_a_refusal():
    def refuse(event):
        raise RequestEndedError("done", "It is over.")

    room = WaitingRoom()
    future = park(room, answer=refuse)
    told(room, KEY, ENDED)
    with pytest.raises(RequestEndedError, match="It is over"):
        future.result(0)


def test_time_is_over_for_each_at_its_own_moment():
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


def test_who_has_left_is_neither_answered_nor_kept():
    room = WaitingRoom()
    gone, stays = park(room), park(room)
    assert gone.cancel()
    told(room, KEY, GRANTED)
    assert gone.cancelled()
    assert stays.result(0) == 1
    leaving = park(room, deadline=1.0)
    leaving.cancel()
    expired(room, 0.0)
    assert room.next_deadline() is None


def test_an_event_asks_none_of_those_for_whom_it_is_too_early():
    room, asked = WaitingRoom(), []

    def wanted(event):
        asked.append(event.sequence)
        return event.sequence > 1

    far = [room.park(KEY, 10.0, Wait(wanted, lambda event: event.sequence, None, after=after)) for after in range(1, 9)]
    near = park(room)
    room.notify(KEY, GRANTED, GRANTED.sequence)
    room.serve()
    assert near.done()
    assert asked == []
    room.notify(KEY, ENDED, ENDED.sequence)
    room.serve()
    assert asked == [2]
    assert [future.done() for future in far] == [True] + 7 * [False]


def test_the_last_event_is_for_those_too_who_wait_for_a_later_one():
    room = WaitingRoom()
    waits = room.park(KEY, 10.0, Wait(lambda event: True, lambda event: event.kind, None, after=1 << 40))
    room.notify(KEY, ENDED, math.inf)
    room.serve()
    assert waits.result(0) is EventKind.ENDED


def test_a_wait_for_the_last_event_does_not_end_with_another_end():
    room = WaitingRoom()
    waits = room.park(KEY, 10.0, Wait(lambda event: False, lambda event: event.kind, None, or_last=True))
    room.notify(KEY, ENDED, ENDED.sequence)
    room.serve()
    assert not waits.done(), "another part still waits"
    room.notify(KEY, ENDED, math.inf)
    room.serve()
    assert waits.result(0) is EventKind.ENDED
