"""Common properties of answers, and limits of requests."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from blast_base.json_types import JsonObject

log = logging.getLogger(__name__)

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
MAX_BYTES = 16_384
"""Bytes of a body: the page's largest command has a reason of 300 characters."""
SECONDS_TO_SEND = 10.0
"""A client that sends its body slowly would hold its connection."""

Page = Callable[[Request], Awaitable[Response]]


def with_headers(page: Page) -> Page:
    """Return the page with headers that forbid caching and content sniffing."""

    async def answer(request: Request) -> Response:
        response = await page(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return answer


def accepts_json(request: Request) -> bool:
    """Return true if a script sent the request."""
    return "application/json" in request.headers.get("accept", "")


async def sent(request: Request) -> JsonObject:
    """Return the JSON object of the request body. Raises HTTPException."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "The request must be JSON: send 'Content-Type: application/json'.")
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS_TO_SEND):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BYTES:
                    raise HTTPException(413, f"The request body exceeds {MAX_BYTES} bytes.")
    except TimeoutError:
        raise HTTPException(408, "The request body did not arrive in time.") from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The request body is not valid JSON.") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "The request body must be a JSON object.")
    return found


def text(given: JsonObject, name: str, longest: int = 1024) -> str:
    """Return a text of what was given. Raises HTTPException.

    JSON can carry half of a surrogate pair, which is in no encoding, and a query string what is not UTF-8: neither is
    printable, or only as U+FFFD.
    """
    found = given.get(name)
    if not isinstance(found, str) or not 0 < len(found) <= longest:
        raise HTTPException(400, f"{name} must be text of at most {longest} characters.")
    if not found.isprintable() or "\ufffd" in found:
        raise HTTPException(400, f"{name} must be printable UTF-8 text.")
    return found


async def failed(request: Request, error: Exception) -> Response:
    """Log an internal error and build its answer."""
    log.error("%s %s failed", request.method, request.scope["path"], exc_info=error)
    sentence = "Internal error of the controller: see its log."
    return JSONResponse({"message": sentence}, 500, HEADERS)
