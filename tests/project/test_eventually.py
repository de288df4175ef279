"""The waiting helpers of tests: they return the answer, and a timeout names the condition."""

import asyncio

import pytest

from tests.support.waiting import eventually, eventually_async


def test_eventually_returns_first_true_answer():
    answers = iter([None, 0, [], "here", "too late"])
    assert eventually(lambda: next(answers), "an answer") == "here"


def test_timeout_names_condition_and_last_answer():
    with pytest.raises(AssertionError, match=r"waited 0 s in vain for the grant; the last answer was 0$"):
        eventually(lambda: 0, event="the grant", within=0)


async def test_event_loop_runs_while_coroutine_waits():
    calls: list[int] = []
    asyncio.get_running_loop().call_soon(calls.append, 7)
    assert await eventually_async(lambda: calls, "the call") == [7]


async def test_timeout_of_coroutine_names_condition():
    with pytest.raises(AssertionError, match=r"waited 0 s in vain for the grant; the last answer was None$"):
        await eventually_async(lambda: None, "the grant", within=0)
