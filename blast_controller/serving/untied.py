"""Transports of asyncio that go with their connections, and do not wait for the collector of garbage.

Each holds itself by a bound method, with its socket and all that hangs on it. Clients who come and go, dozens a second,
would fill the memory with them from one look at everything to the next. None of the names is documented: were they
gone, nothing would break, and what is said above would be so again.
"""

from __future__ import annotations

from asyncio import selector_events
from collections.abc import Callable
from typing import Protocol


class _Tied(Protocol):
    """A transport, by what holds it."""

    _read_ready_cb: Callable[[], None]


_Transport = getattr(selector_events, "_SelectorSocketTransport", None)
_before: Callable[[_Tied, Exception | None], None] | None = getattr(_Transport, "_call_connection_lost", None)


def untie_transports() -> None:
    """From now on, for the whole process; as often as you like."""
    if _Transport is not None and _before is not None:
        _Transport._call_connection_lost = _call_connection_lost


def _call_connection_lost(transport: _Tied, error: Exception | None) -> None:
    assert _before is not None
    try:
        _before(transport, error)
    finally:
        transport._read_ready_cb = _hear_nothing


def _hear_nothing() -> None:
    """What comes is for nobody."""
