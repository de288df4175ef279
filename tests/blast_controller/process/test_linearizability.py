"""The linearizability checker on histories with a known verdict."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.controller.linearizability import Operation, check


def register(state: int, call: tuple) -> list[int]:
    match call:
        case ("write", value):
            return [value]
        case ("read", value):
            return [state] if state == value else []
    raise AssertionError(call)


def only_reads(call: tuple) -> bool:
    return call[0] == "read"


def history(*rows: tuple) -> list[Operation]:
    return [Operation(call, begin, end) for call, begin, end in rows]


def is_linearizable(*rows: tuple) -> bool:
    return check(history(*rows), 0, register, only_reads).is_linearizable


W1, W2, R0, R1, R2 = ("write", 1), ("write", 2), ("read", 0), ("read", 1), ("read", 2)
OPEN = math.inf


@pytest.mark.parametrize(
    "rows",
    [
        # A write that was acknowledged is lost.
        [(W1, 0, 1), (R0, 2, 3)],
        # A read returns an older value than an earlier read.
        [(W1, 0, 5), (R1, 1, 2), (R0, 3, 4)],
        # Two readers see two writes in two orders.
        [(W1, 0, 9), (W2, 0, 9), (R1, 1, 2), (R2, 3, 4), (R1, 5, 6)],
        # A read returns a value that was never written.
        [(R1, 0, 1)],
        # An unanswered write took effect and was lost again.
        [(W1, 0, OPEN), (R1, 1, 2), (R0, 3, 4)],
        # Herlihy & Wing (1990): a read returns the old value after a later write.
        [(W1, 0, 1), (W2, 2, 3), (R1, 4, 5)],
    ],
)
def test_checker_rejects_history_that_no_order_explains(rows):
    verdict = check(history(*rows), 0, register, only_reads)
    assert not verdict.is_linearizable
    assert "no order explains" in str(verdict) and (not rows or verdict.stuck)


CALLS = st.lists(st.sampled_from([W1, W2, "read"]), min_size=1, max_size=12)


@given(calls=CALLS, data=st.data())
def test_checker_agrees_with_a_search_of_all_orders(calls, data):
    rows = []
    for call in calls[:5]:
        begin = data.draw(st.integers(0, 6))
        end = data.draw(st.one_of(st.just(OPEN), st.integers(begin, begin + 4)))
        rows.append((call if call != "read" else ("read", data.draw(st.integers(0, 2))), begin, end))
    assert is_linearizable(*rows) == any(_explains(order) for order in _orders(history(*rows)))


def _orders(operations: list[Operation]) -> list[list[Operation]]:
    """Return all orders of all sets that contain at least the answered operations."""
    if not operations:
        return [[]]
    found = []
    for number, first in enumerate(operations):
        rest = operations[:number] + operations[number + 1 :]
        found += [[first, *order] for order in _orders(rest)]
    if not any(one.is_answered for one in operations):
        found.append([])
    return found


def _explains(order: list[Operation]) -> bool:
    state, answered = 0, 0
    for number, one in enumerate(order):
        if any(later.end < one.begin for later in order[number + 1 :]):
            return False
        states = register(state, one.call)
        if not states:
            return False
        state = states[0]
        answered += one.is_answered
    return True
