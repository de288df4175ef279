"""The request that a client means by a key, and how it stands."""

from __future__ import annotations

from blast_api import ttypes
from blast_controller.core.model.requests import Request, RequestKey
from blast_controller.rpc import convert
from blast_controller.rpc.clients.access import name_request
from blast_controller.rpc.clients.identity import Identity
from blast_controller.runtime.runtime import Turn


def named(turn: Turn, client: Identity, key: str | None) -> RequestKey:
    """The name of the request that a client calls `key`."""
    text = key or ""
    return name_request(client, text, (client.tenant, text) in turn.core.requests)


def found(turn: Turn, client: Identity, key: str | None) -> Request:
    """The request that a client calls `key`. Raises UnknownRequest."""
    return turn.core.request(named(turn, client, key))


def status_of(turn: Turn, request: RequestKey) -> ttypes.RequestStatus:
    """How a request stands. Raises UnknownRequest."""
    return convert.status(turn.core, turn.core.request(request), turn.now)
