"""The inbox loses and duplicates nothing, keeps the order of each account, and serves accounts in rotation."""

from __future__ import annotations

import queue
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.runtime.inbox import MAX_URGENT, MAX_WITH_DEVICES, Inbox

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
def test_inbox_serves_accounts_in_rotation_and_in_order(steps):
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
                inbox.get(0)
            continue
        whose, number = inbox.get(0)
        got.setdefault(whose, []).append(number)
        waiting[whose] -= 1
        assert whose != LAST or not waiting.total() - waiting[LAST]
        passed[whose] = 0
        for other in "abc":
            if other != whose and waiting[other]:
                passed[other] += 1
                # Each other account once, and between two of them device events.
                assert passed[other] <= 3 * (MAX_URGENT + 1)
    assert got == {whose: list(range(number)) for whose, number in count.items()}


def test_flood_of_one_account_waits_for_another_account():
    inbox: Inbox[str] = Inbox()
    for number in range(500):
        inbox.put_for("flood", f"flood {number}")
    inbox.put_for("other", "other")
    assert [inbox.get(0) for _ in range(2)] == ["flood 0", "other"]


@given(STEPS)
def test_batch_has_one_account_or_one_piece_of_each(steps):
    inbox: Inbox[str] = Inbox()
    for whose in steps:
        if whose is not None:
            put(inbox, whose, whose)
    left = sum(whose is not None for whose in steps)
    while left:
        inbox.begin()
        together = [inbox.get(0)]
        while True:
            try:
                together.append(inbox.get_more())
            except queue.Empty:
                break
        left -= len(together)
        accounts = Counter(whose for whose in together if whose not in {URGENT, LAST})
        if len(accounts) > 1:
            # The first account may have been alone for a while.
            assert all(count == 1 for whose, count in accounts.items() if whose != next(iter(accounts)))
            second = next(
                place for place, whose in enumerate(together) if whose in {*accounts} - {next(iter(accounts))}
            )
            assert next(iter(accounts)) not in together[second:]
        elif URGENT in together:
            assert accounts.total() <= max(MAX_WITH_DEVICES, together.index(URGENT))
    with pytest.raises(queue.Empty):
        inbox.get(0)


def test_batch_ends_soon_after_another_account_arrives():
    inbox: Inbox[str] = Inbox()
    for number in range(500):
        inbox.put_for("flood", f"flood {number}")
    inbox.begin()
    together = [inbox.get(0), *(inbox.get_more() for _ in range(9))]
    assert together == [f"flood {number}" for number in range(10)], "a single account continues"
    inbox.put_for("other", "other")
    inbox.put_for("other", "other again")
    assert [inbox.get_more() for _ in range(2)] == ["flood 10", "other"]
    with pytest.raises(queue.Empty):
        inbox.get_more()
    inbox.begin()
    assert [inbox.get(0), inbox.get_more()] == ["flood 11", "other again"]


def test_batch_with_device_event_is_bounded():
    inbox: Inbox[str] = Inbox()
    for number in range(500):
        inbox.put_for("flood", f"flood {number}")
    inbox.put("device")
    inbox.begin()
    together = [inbox.get(0), *(inbox.get_more() for _ in range(MAX_WITH_DEVICES))]
    assert together == ["device", *(f"flood {number}" for number in range(MAX_WITH_DEVICES))]
    with pytest.raises(queue.Empty):
        inbox.get_more()


def test_every_kind_of_work_wakes_the_reader():
    for kind in (URGENT, "a", LAST):
        inbox: Inbox[str] = Inbox()
        got: queue.SimpleQueue[str] = queue.SimpleQueue()
        thread = threading.Thread(target=lambda box, out: out.put(box.get(None)), args=(inbox, got))
        thread.start()
        put(inbox, kind, "piece")
        assert got.get(timeout=30) == "piece"
        thread.join()
