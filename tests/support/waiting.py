"""The one way in which tests wait: until a condition holds, with a limit that only keeps them from hanging."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HANGING = 30.0
"""Seconds. No test is about this number: a machine several times slower than ours needs a fraction of it."""

PAUSE = 0.002
LONGEST_PAUSE = 0.02
"""Seconds between two looks: who has waited for long is not in a hurry, and others need the processor."""


def eventually(condition: Callable[[], T], what: str = "it to come true", within: float = HANGING) -> T:
    """Ask `condition` until its answer is true, and give that answer back.

    `within` is in seconds. Raises AssertionError that names `what` and the last answer when the time is over.
    """
    return look_until(condition, bool, what, within)


def look_until(look: Callable[[], T], wanted: Callable[[T], object], what: str, within: float = HANGING) -> T:
    """Look until what is seen is as `wanted`, and give it back; as `eventually` otherwise."""
    limit, pause = time.monotonic() + within, PAUSE
    while not wanted(seen := look()):
        if time.monotonic() >= limit:
            raise _waited_in_vain(what, within, seen)
        time.sleep(pause)
        pause = min(1.2 * pause, LONGEST_PAUSE)
    return seen


async def eventually_async(condition: Callable[[], T], what: str = "it to come true", within: float = HANGING) -> T:
    """The same for a coroutine: between two questions the event loop works on."""
    clock = asyncio.get_running_loop().time
    limit = clock() + within
    while not (answer := condition()):
        if clock() >= limit:
            raise _waited_in_vain(what, within, answer)
        await asyncio.sleep(PAUSE)
    return answer


def _waited_in_vain(what: str, within: float, answer: object) -> AssertionError:
    return AssertionError(f"waited {within:g} s in vain for {what}; the last answer was {answer!r}")


def at_rest(look: Callable[[], T], seconds: float = 0.3) -> T:
    """What `look` sees once it has not changed for `seconds`: for counters of what is on its way, which has no end.

    Raises AssertionError when it never rests.
    """
    seen = look()
    since = time.monotonic()

    def rests() -> bool:
        nonlocal seen, since
        if (now := look()) != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    eventually(rests, "what is on its way to arrive")
    return seen


def for_a_while(condition: Callable[[], object], what: str, seconds: float = 0.1) -> None:
    """Ask `condition` for so many seconds: its answer stays true.

    Only for what has no other sign than that nothing happens. A busy machine looks less often: it may miss a fault,
    but it sees none that is not there. Raises AssertionError that names `what`.
    """
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        assert condition(), f"{what} did not last {seconds:g} s"
        time.sleep(PAUSE)
    assert condition(), f"{what} did not last {seconds:g} s"
