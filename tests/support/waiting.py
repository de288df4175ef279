"""The one way in which tests wait: until a condition holds, with a limit that only keeps them from hanging."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

HANGING = 30.0
"""Seconds. No test is about this number: a machine several times slower than ours needs a fraction of it."""

PAUSE = 0.002
LONGEST_PAUSE = 0.02
"""Maximum seconds between two polls: a long wait is not urgent, and other processes need the processor."""


def eventually(condition: Callable[[], T], event: str = "the condition to hold", within: float = HANGING) -> T:
    """Poll `condition` until its answer is true, and return the answer.

    `within` is in seconds. Raises AssertionError that names `event` and the last answer when the time is over.
    """
    return look_until(condition, bool, event, within)


def look_until(look: Callable[[], T], is_expected: Callable[[T], object], event: str, within: float = HANGING) -> T:
    """Poll `look` until its answer `is_expected`, and return it; otherwise like `eventually`."""
    limit, pause = time.monotonic() + within, PAUSE
    while not is_expected(seen := look()):
        if time.monotonic() >= limit:
            raise _waited_in_vain(event, within, seen)
        time.sleep(pause)
        pause = min(1.2 * pause, LONGEST_PAUSE)
    return seen


async def eventually_async(
    condition: Callable[[], T | Awaitable[T]], event: str = "the condition to hold", within: float = HANGING
) -> T:
    """Wait like `eventually` in a coroutine, which the condition may be too; the event loop continues meanwhile."""
    clock = asyncio.get_running_loop().time
    limit = clock() + within

    async def ask() -> T:
        answer = condition()
        return await answer if isinstance(answer, Awaitable) else answer

    while not (answer := await ask()):
        if clock() >= limit:
            raise _waited_in_vain(event, within, answer)
        await asyncio.sleep(PAUSE)
    return answer


def _waited_in_vain(event: str, within: float, answer: object) -> AssertionError:
    return AssertionError(f"waited {within:g} s in vain for {event}; the last answer was {answer!r}")


def at_rest(look: Callable[[], T], seconds: float = 0.3) -> T:
    """Return the result of `look` once it has not changed for `seconds`: for counters of traffic without an end.

    Raises AssertionError if it keeps changing.
    """
    seen = look()
    since = time.monotonic()

    def rests() -> bool:
        nonlocal seen, since
        if (now := look()) != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    eventually(rests, "the traffic to end")
    return seen


def for_a_while(condition: Callable[[], object], event: str, seconds: float = 0.1) -> None:
    """Poll `condition` for `seconds`, and check that it stays true.

    For absence of events only, which has no other sign. A busy machine polls less often: it may miss a fault, but it
    reports none that does not exist. Raises AssertionError that names `event`.
    """
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        assert condition(), f"{event} did not last {seconds:g} s"
        time.sleep(PAUSE)
    assert condition(), f"{event} did not last {seconds:g} s"
