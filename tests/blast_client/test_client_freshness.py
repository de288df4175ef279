"""A client that reads from several controllers never accepts an older state."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from blast_client.api.address import Address
from blast_client.api.failover import PAUSE, Controllers, Search
from blast_client.api.freshness import BELIEVED_AFTER, Freshness, StaleAnswerError

ONE, OTHER = Address("ctl1", 9090), Address("ctl2", 9090)


def answer(sequence, stale=None):
    return SimpleNamespace(journalSequence=sequence, staleMs=stale)


class Reader:
    """Sequential calls, on a virtual clock."""

    def __init__(self):
        self.now = 100.0
        self.freshness = Freshness(lambda: self.now)

    def receive(self, *fields, of=ONE):
        return self.freshness.of(answer(*fields), self.freshness.known, of)


def test_older_answer_of_replica_is_rejected():
    reader = Reader()
    assert reader.receive(5).journalSequence == 5
    with pytest.raises(StaleAnswerError, match="ctl2:9090 is older than a previous answer"):
        reader.receive(4, 100, of=OTHER)
    assert reader.receive(5, 100) and reader.receive(8, 100)
    for stale in (0, 100, None):
        with pytest.raises(StaleAnswerError):
            reader.receive(7, stale)
    assert reader.receive(8)


def test_older_answer_of_leader_is_accepted_after_delay():
    # Its journal was restored from a backup.
    reader = Reader()
    reader.receive(500)
    with pytest.raises(StaleAnswerError):
        reader.receive(3)
    reader.now += BELIEVED_AFTER / 2
    with pytest.raises(StaleAnswerError):
        reader.receive(3)
    reader.now += BELIEVED_AFTER / 2
    assert reader.receive(3) and reader.receive(3, 100, of=OTHER)


def test_older_answer_of_standby_is_never_accepted():
    reader = Reader()
    reader.receive(500)
    for _ in range(3):
        with pytest.raises(StaleAnswerError):
            reader.receive(3, 100)
        reader.now += BELIEVED_AFTER


def test_newer_answer_restarts_delay_before_older_is_accepted():
    reader = Reader()
    reader.receive(5)
    with pytest.raises(StaleAnswerError):
        reader.receive(4)
    reader.receive(6)
    reader.now += BELIEVED_AFTER
    with pytest.raises(StaleAnswerError):
        reader.receive(5)


def test_answers_to_concurrent_calls_may_arrive_in_any_order():
    freshness = Freshness()
    known = freshness.known
    assert freshness.of(answer(9), known, ONE)
    assert freshness.of(answer(8), known, ONE), "the call began before the other answer"
    assert freshness.known == 9


def test_answer_to_change_is_always_accepted():
    freshness = Freshness()
    assert freshness.note(answer(9)) and freshness.note(answer(8)) and freshness.note(None) is None
    assert freshness.known == 9


def test_answer_without_sequence_is_accepted():
    reader = Reader()
    reader.receive(5)
    assert reader.receive(None, 100) and reader.freshness.of([1], 5, ONE) == [1]


def test_stale_answer_moves_to_next_controller_or_retries_single_one():
    several = Search(Controllers([ONE, OTHER]), safe=True, end=10.0)
    assert several.pause_after(StaleAnswerError(ONE), ONE, now=0.0) == 0.0
    assert several._controllers.address == OTHER
    alone = Search(Controllers([ONE]), safe=True, end=10.0)
    assert alone.pause_after(StaleAnswerError(ONE), ONE, now=0.0) == PAUSE
    assert alone.pause_after(StaleAnswerError(ONE), ONE, now=10.0) is None
