"""Calls of the interface's methods for the page; refusals become one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from blast_api import ttypes
from blast_controller.ops.http.access import Visitor

CALL_TIMEOUT = 45.0
"""Seconds."""

Call = Callable[[tuple[str, frozenset[tuple[str, str]], bytes | None], str, tuple[object, ...]], Future[Any]]
"""A function `call((peer, certificate names, digest of a token), method, arguments)`; raises the method's declared
exceptions."""

_STATUS: dict[type[Exception], int] = {
    ttypes.Denied: 403,
    ttypes.Rejected: 409,
    ttypes.Ended: 409,
    ttypes.UnknownRequest: 404,
    ttypes.Unsupported: 501,
    ttypes.NotLeader: 503,
}


async def called(call: Call, visitor: Visitor, request: Request, method: str, *arguments: object) -> Any:
    """Call a method. Raises HTTPException for its refusals."""
    peer = f"{request.client.host}:{request.client.port}" if request.client else "unknown:0"
    proof = (peer, visitor.names, visitor.digest)
    try:
        future = await asyncio.to_thread(call, proof, method, arguments)
        return await asyncio.wait_for(asyncio.wrap_future(future), CALL_TIMEOUT)
    except TimeoutError:
        raise HTTPException(
            504, "The call timed out; it may still complete. Check its effect before you repeat it."
        ) from None
    except tuple(_STATUS) as error:
        raise HTTPException(_STATUS[type(error)], sentence_of(error)) from None


def sentence_of(error: Exception) -> str:
    """Return the message of the interface's exception."""
    match error:
        case ttypes.UnknownRequest(key=key):
            return f"There is no request {key}."
        case ttypes.Ended(reason=reason):
            return f"The request has ended already: {reason}"
        case ttypes.NotLeader(address=address):
            return (
                f"This controller is a standby; the leader is {address or 'another controller'}. Open the "
                "leader's page."
            )
        case _:
            return str(getattr(error, "message", error))
