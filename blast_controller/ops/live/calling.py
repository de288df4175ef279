"""Methods of the interface, called for whoever looks at the page; what they refuse, in a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from blast_api import ttypes
from blast_controller.ops.http.access import Visitor

PATIENCE = 45.0
"""Seconds."""

Call = Callable[[tuple[str, frozenset[tuple[str, str]], bytes | None], str, tuple[object, ...]], Future[Any]]
"""As `call((peer, certificate names, digest of a token), method, arguments)`; raises what the method declares."""

_STATUS: dict[type[Exception], int] = {
    ttypes.Denied: 403,
    ttypes.Rejected: 409,
    ttypes.Ended: 409,
    ttypes.UnknownRequest: 404,
    ttypes.Unsupported: 501,
    ttypes.NotLeader: 503,
}


async def called(call: Call, visitor: Visitor, request: Request, method: str, *arguments: object) -> Any:
    """What a method answers. Raises HTTPException with what it refuses."""
    peer = f"{request.client.host}:{request.client.port}" if request.client else "unknown:0"
    proof = (peer, visitor.names, visitor.digest)
    try:
        future = await asyncio.to_thread(call, proof, method, arguments)
        return await asyncio.wait_for(asyncio.wrap_future(future), PATIENCE)
    except TimeoutError:
        raise HTTPException(504, "No answer came in time; what was asked for may still be done.") from None
    except tuple(_STATUS) as error:
        raise HTTPException(_STATUS[type(error)], sentence_of(error)) from None


def sentence_of(error: Exception) -> str:
    """What a refusal of the interface says to people."""
    match error:
        case ttypes.UnknownRequest(key=key):
            return f"No request {key} is known here."
        case ttypes.Ended(reason=reason):
            return f"The request is over already: {reason}"
        case ttypes.NotLeader(address=address):
            return f"This controller stands by: {address or 'another controller'} decides. Open its page."
        case _:
            return str(getattr(error, "message", error))
