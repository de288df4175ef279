"""The request that a client means by a key, and how it stands."""

from __future__ import annotations

from collections.abc import Container

from blast_api import ttypes
from blast_controller.core.model.requests import Request, RequestKey
from blast_controller.rpc import convert
from blast_controller.rpc.clients.access import name_request
from blast_controller.rpc.clients.identity import Identity
from blast_controller.runtime.runtime import CoreContext, PublishedState


def named(known: Container[RequestKey], client: Identity, key: str | None) -> RequestKey:
    """Return the name of the request that a client calls `key`, where these are known."""
    text = key or ""
    return name_request(client, text, (client.tenant, text) in known)


def found(context: CoreContext, client: Identity, key: str | None) -> Request:
    """Return the request that a client calls `key`. Raises UnknownRequestError."""
    return context.core.request(named(context.core.requests, client, key))


def status_of(context: CoreContext, request: RequestKey) -> ttypes.RequestStatus:
    """Return the published status of a request.

    Raises UnknownRequestError, or NotLeaderError if another controller may know the request or a newer state of it.
    """
    return _status(context, request, context.look)


def changed_status(context: CoreContext, request: RequestKey) -> ttypes.RequestStatus:
    """Return the status of a request that the caller changed.

    It is that of the latest write, because a NotLeaderError would mean that the request was not changed. Raises
    UnknownRequestError or, on a standby, NotLeaderError, if the request is not in it.
    """
    return _status(context, request, context.written)


def _status(context: CoreContext, request: RequestKey, look: PublishedState) -> ttypes.RequestStatus:
    if request not in look.snapshot.requests.by_name:
        context.check_leader()
    facts = look.snapshot.request(request)
    return convert.status(facts, look, lambda part: context.core.reason(facts.current, part, context.now))
