"""Transports of asyncio that are freed with their connections, without the garbage collector.

Each refers to itself by a bound method, with its socket and all attached data. Dozens of short-lived clients a second
would fill memory with them between two full collections. The names used here are not documented: if asyncio changes
them, only this optimization is lost.
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
    """Patch the transports of the whole process; idempotent."""
    if _Transport is not None and _before is not None:
        _Transport._call_connection_lost = _call_connection_lost


def _call_connection_lost(transport: _Tied, error: Exception | None) -> None:
    assert _before is not None
    try:
        _before(transport, error)
    finally:
        transport._read_ready_cb = _ignore_input


def _ignore_input() -> None:
    """Do nothing: input is ignored."""
