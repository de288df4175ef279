"""Transports of asyncio that go with their connections, and do not wait for the collector of garbage.

Each holds itself by a bound method, with its socket and all that hangs on it. Clients who come and go, dozens a second,
would fill the memory with them from one look at everything to the next. The attribute is not documented: without it
nothing would break, and what is said above would be so again.
"""

from __future__ import annotations

from asyncio import selector_events
from typing import Any

_ATTRIBUTE = "_read_ready_cb"
_Transport: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]


def untie_transports() -> None:
    """From now on, for the whole process; as often as you like."""
    _Transport._call_connection_lost = _call_connection_lost


_before = _Transport._call_connection_lost


def _call_connection_lost(transport: Any, error: Exception | None) -> None:
    try:
        _before(transport, error)
    finally:
        if hasattr(transport, _ATTRIBUTE):
            setattr(transport, _ATTRIBUTE, _hear_nothing)


def _hear_nothing() -> None:
    """What comes is for nobody."""
