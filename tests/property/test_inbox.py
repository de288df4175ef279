"""The inbox: nothing is lost or doubled, each account keeps its order, and none waits for all of another."""

from __future__ import annotations

import queue
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.inbox import MOST_URGENT, Inbox

URGENT, LAST = "urgent", "last"
WHOSE = st.sampled_from([URGENT, "a", "b", "c", LAST])
STEPS = st.lists(st.one_of(WHOSE, st.none()), max_size=200)


def put(inbox, whose, piece):
    if whose == URGENT:
        inbox.put(piece)
    elif whose == LAST:
        inbox.put_last(piece)
    else:
        inbox.put_for(whose, piece)


@given(STEPS)
def test_everything_is_got_once_in_its_order_and_in_turns(steps):
    inbox: Inbox[tuple[str, int]] = Inbox()
    waiting: Counter[str] = Counter()
    count: Counter[str] = Counter()
    got: dict[str, list[int]] = {}
    passed: Counter[str] = Counter()
    for step in [*steps, *[None] * len(steps)]:
        if step is not None:
            put(inbox, step, (step, count[step]))
            count[step] += 1
            waiting[step] += 1
            continue
        if not waiting.total():
            with pytest.raises(queue.Empty):
                inbox.get_nowait()
            continue
        whose, number = inbox.get_nowait()
        got.setdefault(whose, []).append(number)
        waiting[whose] -= 1
        assert whose != LAST or not waiting.total() - waiting[LAST]
        passed[whose] = 0
        for other in "abc":
            if other != whose and waiting[other]:
                passed[other] += 1
                # Each of the others once, and between two of those what devices say.
                assert passed[other] <= 3 * (MOST_URGENT + 1)
    assert got == {whose: list(range(number)) for whose, number in count.items()}


def test_a_flood_of_one_account_stands_behind_one_piece_of_another():
    inbox: Inbox[str] = Inbox()
    for number in range(500):
        inbox.put_for("flood", f"flood {number}")
    inbox.put_for("other", "other")
    assert [inbox.get_nowait() for _ in range(2)] == ["flood 0", "other"]


def test_who_waits_is_woken_by_any_kind():
    for kind in (URGENT, "a", LAST):
        inbox: Inbox[str] = Inbox()
        got: queue.SimpleQueue[str] = queue.SimpleQueue()
        thread = threading.Thread(target=lambda box, out: out.put(box.get(None)), args=(inbox, got))
        thread.start()
        put(inbox, kind, "piece")
        assert got.get(timeout=30) == "piece"
        thread.join()
