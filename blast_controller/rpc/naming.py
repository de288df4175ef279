"""The request that a client means by a key, and how it stands."""

from __future__ import annotations

from collections.abc import Container

from blast_api import ttypes
from blast_controller.core.model.requests import Request, RequestKey
from blast_controller.rpc import convert
from blast_controller.rpc.clients.access import name_request
from blast_controller.rpc.clients.identity import Identity
from blast_controller.runtime.runtime import Look, Turn


def named(known: Container[RequestKey], client: Identity, key: str | None) -> RequestKey:
    """The name of the request that a client calls `key`, where these are known."""
    text = key or ""
    return name_request(client, text, (client.tenant, text) in known)


def found(turn: Turn, client: Identity, key: str | None) -> Request:
    """The request that a client calls `key`. Raises UnknownRequest."""
    return turn.core.request(named(turn.core.requests, client, key))


def status_of(turn: Turn, request: RequestKey) -> ttypes.RequestStatus:
    """How a request stands, as far as that is published. Raises UnknownRequest; NotLeader where others may know it."""
    return _status(turn, request, turn.look)


def changed_status(turn: Turn, request: RequestKey) -> ttypes.RequestStatus:
    """How a request stands that the caller has changed: NotLeader would say that it has not. Raises UnknownRequest."""
    return _status(turn, request, turn.written)


def _status(turn: Turn, request: RequestKey, look: Look) -> ttypes.RequestStatus:
    if request not in look.snapshot.requests.by_name:
        turn.check_leads()
    facts = look.snapshot.request(request)
    return convert.status(facts, look, lambda part: turn.core.reason(facts.current, part, turn.now))
