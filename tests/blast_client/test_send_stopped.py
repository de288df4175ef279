"""The message about a stopped transfer, and the end of a stream that a signal may cause."""

from __future__ import annotations

import asyncio
import signal

import pytest

from blast_client.send.stopped import TransferProgress, cancelled_by_sigterm, unless_stopped
from blast_transport.store.sources.source import AtEnd


def ended(number: int | None) -> tuple[bool, bool]:
    """Return whether the end of a stream counts under this signal, and whether it was recorded."""
    so_far, ends = TransferProgress("log", resumable=False), list[bool]()

    async def transfer() -> None:
        at_end = unless_stopped(so_far)
        if number is not None:
            signal.raise_signal(number)  # by this thread itself: another thread may receive a signal to the process
        at_end(lambda: ends.append(True))
        await asyncio.sleep(0)  # lets the loop evaluate the end

    try:
        asyncio.run(cancelled_by_sigterm(transfer()))
    except (asyncio.CancelledError, KeyboardInterrupt):
        assert number is not None
    return bool(ends), so_far.ended


@pytest.mark.usefixtures("own_signals")
def test_end_of_stream_counts_unless_signal_stops_transfer() -> None:
    # Background jobs may inherit an ignored SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert ended(None) == (True, True)
    assert ended(signal.SIGTERM) == (False, False)
    assert ended(signal.SIGINT) == (False, False)


def test_end_of_stream_after_transfer_is_ignored() -> None:
    so_far, ends = TransferProgress("log", resumable=False), list[bool]()

    async def transfer() -> AtEnd:
        return unless_stopped(so_far)

    at_end = asyncio.run(transfer())
    at_end(lambda: ends.append(True))
    assert not ends and not so_far.ended


@pytest.mark.parametrize(
    ("so_far", "message"),
    [
        (TransferProgress("log", resumable=False), "stopped before the transfer began"),
        (TransferProgress("log", resumable=False, whole={("a",): 0}), "the other receivers keep nothing of it"),
        (TransferProgress("log", resumable=False, whole={("a", "b"): 1}), "1 receiver has all data; log cannot"),
        (
            TransferProgress("log", resumable=False, whole={("a",): 0}, ended=True),
            "after the end of log: the others have all of it or nothing",
        ),
        (TransferProgress("log", resumable=True, whole={("a",): 0}), "run the same command to resume"),
    ],
)
def test_stop_message_describes_progress(so_far: TransferProgress, message: str) -> None:
    assert message in so_far.sentence()
