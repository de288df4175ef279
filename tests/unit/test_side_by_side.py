"""Which file of tests a worker gets next: those that judge how fast something is meet none that wants a lab."""

from __future__ import annotations

import os

import pytest

from tests.support import side_by_side
from tests.support.side_by_side import GIVES_WAY, INTEGRATION, LAST, MOST_LABS, following, give_way

WAITING = [f"{INTEGRATION}test_{name}.py" for name in "abcdef"]
COMPUTING = [f"tests/unit/test_{name}.py" for name in "abcdef"]


def test_those_that_wait_come_first_on_all_workers_but_one():
    assert following([*COMPUTING, *WAITING, LAST], 2, workers=4) == WAITING[0]
    assert following([*COMPUTING, *WAITING, LAST], 3, workers=4) == COMPUTING[0]
    assert following([*COMPUTING, *WAITING], 0, workers=1) == WAITING[0]


def test_no_more_than_a_few_labs_share_a_switch():
    assert following([*COMPUTING, *WAITING], MOST_LABS, workers=8) == COMPUTING[0]


def test_who_finds_nothing_else_does_what_is_left():
    assert following(WAITING, 3, workers=4) == WAITING[0]
    assert following([LAST], 3, workers=4) == LAST


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
def test_what_is_alone_begins_when_no_other_integration_test_is_under_way(workers):
    left, at_work, order = [*COMPUTING * 3, *WAITING, LAST], ["" for _ in range(workers)], []
    turn = 0
    while left:
        others = [file for worker, file in enumerate(at_work) if worker != turn]
        chosen = following(left, sum(file.startswith(INTEGRATION) for file in others), workers)
        if chosen == LAST:
            assert not any(file.startswith(INTEGRATION) for file in others) and not set(left) & set(WAITING)
        left.remove(chosen)
        order.append(chosen)
        at_work[turn], turn = chosen, (turn + 1) % workers
    assert sorted(order) == sorted([*COMPUTING * 3, *WAITING, LAST])
    assert order.index(LAST) < len(order) - 1, "there is something to compute beside it"


def test_what_computes_gives_way_and_what_waits_does_not(monkeypatch):
    told = []
    monkeypatch.setattr(side_by_side, "_OWN", 0)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "setpriority", lambda *words: told.append(words[2]))
    for nodeid in (f"{COMPUTING[0]}::test_one", f"{WAITING[0]}::test_one", "tests/property/test_a.py::test_one"):
        give_way(nodeid)
    assert told == [GIVES_WAY, 0, GIVES_WAY]
