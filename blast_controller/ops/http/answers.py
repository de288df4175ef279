"""What all answers have in common, and the bounds of what is asked."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

log = logging.getLogger(__name__)

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
MAX_BYTES = 16_384
SECONDS_TO_SEND = 10.0

Page = Callable[[Request], Awaitable[Response]]


def with_headers(page: Page) -> Page:
    """The same page, whose answers are kept by nobody and guessed to be nothing else."""

    async def answer(request: Request) -> Response:
        response = await page(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return answer


def wants_json(request: Request) -> bool:
    """Whether a script asks."""
    return "application/json" in request.headers.get("accept", "")


async def sent(request: Request) -> dict[str, Any]:
    """The JSON object that was sent. Raises HTTPException."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "Send JSON: 'Content-Type: application/json'.")
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS_TO_SEND):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BYTES:
                    raise HTTPException(413, f"At most {MAX_BYTES} bytes are taken.")
    except TimeoutError:
        raise HTTPException(408, "What was to be sent did not come in time.") from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "That is no JSON.") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "Send a JSON object.")
    return found


def text(given: dict[str, Any], name: str, longest: int = 1024) -> str:
    """A text of what was given. Raises HTTPException.

    JSON can carry half of a surrogate pair, which is in no encoding, and a query string what is not UTF-8: neither is
    printable, or only as U+FFFD.
    """
    found = given.get(name)
    if not isinstance(found, str) or not 0 < len(found) <= longest:
        raise HTTPException(400, f"Give {name} as text, of at most {longest} characters.")
    if not found.isprintable() or "\ufffd" in found:
        raise HTTPException(400, f"Give {name} as printable text in UTF-8.")
    return found


async def failed(request: Request, error: Exception) -> Response:
    """Our fault: told in a sentence, and to the log with all that is known."""
    log.error("%s %s failed", request.method, request.scope["path"], exc_info=error)
    sentence = "The controller could not answer this, which is its own fault: its log says more."
    return JSONResponse({"message": sentence}, 500, HEADERS)
