"""Who asks now one controller and now another does not go back in time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from blast_client.api.address import Address
from blast_client.api.failover import PAUSE, Controllers, Search
from blast_client.api.freshness import BELIEVED_AFTER, Freshness, StaleAnswerError

ONE, OTHER = Address("ctl1", 9090), Address("ctl2", 9090)


def answer(sequence, stale=None):
    return SimpleNamespace(journalSequence=sequence, staleMs=stale)


class Asking:
    """Calls one after the other, on a clock of its own."""

    def __init__(self):
        self.now = 100.0
        self.freshness = Freshness(lambda: self.now)

    def hears(self, *told, of=ONE):
        return self.freshness.of(answer(*told), self.freshness.known, of)


def test_who_is_behind_what_was_told_is_not_believed():
    asking = Asking()
    assert asking.hears(5).journalSequence == 5
    with pytest.raises(StaleAnswerError, match="ctl2:9090 is older than a previous answer"):
        asking.hears(4, 100, of=OTHER)
    assert asking.hears(5, 100) and asking.hears(8, 100)
    for stale in (0, 100, None):
        with pytest.raises(StaleAnswerError):
            asking.hears(7, stale)
    assert asking.hears(8)


def test_a_leader_that_goes_on_saying_so_is_believed_since_its_journal_was_restored_from_a_backup():
    asking = Asking()
    asking.hears(500)
    with pytest.raises(StaleAnswerError):
        asking.hears(3)
    asking.now += BELIEVED_AFTER / 2
    with pytest.raises(StaleAnswerError):
        asking.hears(3)
    asking.now += BELIEVED_AFTER / 2
    assert asking.hears(3) and asking.hears(3, 100, of=OTHER)


def test_one_that_stands_by_is_never_believed_for_long():
    asking = Asking()
    asking.hears(500)
    for _ in range(3):
        with pytest.raises(StaleAnswerError):
            asking.hears(3, 100)
        asking.now += BELIEVED_AFTER


def test_a_leader_that_was_behind_once_is_not_believed_the_sooner_next_time():
    asking = Asking()
    asking.hears(5)
    with pytest.raises(StaleAnswerError):
        asking.hears(4)
    asking.hears(6)
    asking.now += BELIEVED_AFTER
    with pytest.raises(StaleAnswerError):
        asking.hears(5)


def test_calls_under_way_at_once_may_be_answered_in_any_order():
    freshness = Freshness()
    known = freshness.known
    assert freshness.of(answer(9), known, ONE)
    assert freshness.of(answer(8), known, ONE), "it began before that was told"
    assert freshness.known == 9


def test_an_answer_to_a_change_is_always_taken():
    freshness = Freshness()
    assert freshness.note(answer(9)) and freshness.note(answer(8)) and freshness.note(None) is None
    assert freshness.known == 9


def test_an_answer_that_does_not_say_how_far_it_goes_is_taken():
    asking = Asking()
    asking.hears(5)
    assert asking.hears(None, 100) and asking.freshness.of([1], 5, ONE) == [1]


def test_the_next_controller_is_asked_and_one_that_is_alone_is_asked_again():
    several = Search(Controllers([ONE, OTHER]), safe=True, end=10.0)
    assert several.pause_after(StaleAnswerError(ONE), ONE, now=0.0) == 0.0
    assert several._controllers.address == OTHER
    alone = Search(Controllers([ONE]), safe=True, end=10.0)
    assert alone.pause_after(StaleAnswerError(ONE), ONE, now=0.0) == PAUSE
    assert alone.pause_after(StaleAnswerError(ONE), ONE, now=10.0) is None
