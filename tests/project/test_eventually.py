"""What the other tests wait with: it gives the answer back, and says what it waited for."""

import asyncio

import pytest

from tests.support.waiting import eventually, eventually_async


def test_the_first_true_answer_comes_back():
    answers = iter([None, 0, [], "here", "too late"])
    assert eventually(lambda: next(answers), "an answer") == "here"


def test_what_was_waited_for_is_named_with_the_last_answer():
    with pytest.raises(AssertionError, match=r"waited 0 s in vain for the light; the last answer was 0$"):
        eventually(lambda: 0, what="the light", within=0)


async def test_the_loop_works_on_while_a_coroutine_waits():
    came: list[int] = []
    asyncio.get_running_loop().call_soon(came.append, 7)
    assert await eventually_async(lambda: came, "the call") == [7]


async def test_a_coroutine_waits_in_vain_too():
    with pytest.raises(AssertionError, match=r"waited 0 s in vain for the light; the last answer was None$"):
        await eventually_async(lambda: None, "the light", within=0)
