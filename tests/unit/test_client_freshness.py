"""Who asks now one controller and now another does not go back in time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from blast_client.address import Address
from blast_client.failover import PAUSE, Controllers, Search
from blast_client.freshness import Freshness, Outdated

ONE, OTHER = Address("ctl1", 9090), Address("ctl2", 9090)


def answer(sequence, stale=None):
    return SimpleNamespace(journalSequence=sequence, staleMs=stale)


def test_a_standby_that_is_behind_what_was_told_is_not_believed():
    freshness = Freshness()
    assert freshness.of(answer(5), ONE).journalSequence == 5
    with pytest.raises(Outdated, match="ctl2:9090 stands by and tells of what is older"):
        freshness.of(answer(4, stale=100), OTHER)
    assert freshness.of(answer(5, stale=100), OTHER)
    assert freshness.of(answer(8, stale=100), OTHER)
    with pytest.raises(Outdated):
        freshness.of(answer(7, stale=0), ONE)


def test_what_the_leader_says_is_so_though_the_journal_was_restored_from_a_backup():
    freshness = Freshness()
    freshness.of(answer(500), ONE)
    assert freshness.of(answer(3), OTHER)
    assert freshness.of(answer(3, stale=100), ONE)


def test_an_answer_that_does_not_say_how_far_it_goes_is_taken():
    freshness = Freshness()
    freshness.of(answer(5), ONE)
    assert freshness.of(answer(None, stale=100), OTHER) and freshness.of([1], OTHER) == [1]


def test_the_next_controller_is_asked_and_one_that_is_alone_is_asked_again():
    several = Search(Controllers([ONE, OTHER]), safe=True, end=10.0)
    assert several.pause_after(Outdated(ONE), ONE, now=0.0) == 0.0
    assert several._controllers.address == OTHER
    alone = Search(Controllers([ONE]), safe=True, end=10.0)
    assert alone.pause_after(Outdated(ONE), ONE, now=0.0) == PAUSE
    assert alone.pause_after(Outdated(ONE), ONE, now=10.0) is None
