"""What is said of data whose transfer was stopped, and whether the end of a stream is its end."""

from __future__ import annotations

import asyncio
import signal

import pytest

from blast_client.send.stopped import SoFar, cancelled_by_sigterm, unless_stopped
from blast_transport.store.sources.source import AtEnd


def ended(number: int | None) -> tuple[bool, bool]:
    """Whether an end is one that comes with this signal, and whether it was noted."""
    so_far, ends = SoFar("log", resumable=False), list[bool]()

    async def transfer() -> None:
        at_end = unless_stopped(so_far)
        if number is not None:
            signal.raise_signal(number)  # by this thread itself: another one may take what is sent to the process
        at_end(lambda: ends.append(True))
        await asyncio.sleep(0)  # a turn of the loop, in which it is judged

    try:
        asyncio.run(cancelled_by_sigterm(transfer()))
    except (asyncio.CancelledError, KeyboardInterrupt):
        assert number is not None
    return bool(ends), so_far.ended


@pytest.mark.usefixtures("own_signals")
def test_an_end_is_one_where_nobody_has_stopped_the_transfer() -> None:
    # Who runs the tests in the background may have told them to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert ended(None) == (True, True)
    assert ended(signal.SIGTERM) == (False, False)
    assert ended(signal.SIGINT) == (False, False)


def test_the_end_of_a_stream_whose_transfer_is_over_is_nobodys() -> None:
    so_far, ends = SoFar("log", resumable=False), list[bool]()

    async def transfer() -> AtEnd:
        return unless_stopped(so_far)

    at_end = asyncio.run(transfer())
    at_end(lambda: ends.append(True))
    assert not ends and not so_far.ended


@pytest.mark.parametrize(
    ("so_far", "said"),
    [
        (SoFar("log", resumable=False), "stopped before the transfer began"),
        (SoFar("log", resumable=False, whole={("a",): 0}), "the other receivers keep nothing of it"),
        (SoFar("log", resumable=False, whole={("a", "b"): 1}), "1 receiver has all data; log cannot"),
        (
            SoFar("log", resumable=False, whole={("a",): 0}, ended=True),
            "after the end of log: the others have all of it or nothing",
        ),
        (SoFar("log", resumable=True, whole={("a",): 0}), "run the same command to resume"),
    ],
)
def test_what_is_said_is_so(so_far: SoFar, said: str) -> None:
    assert said in so_far.sentence()
