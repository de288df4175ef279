"""The routes of the live page. Every answer is JSON; a refusal has one message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from blast_controller.ops.http.access import HttpAccess, Visitor, account_of, refuse_foreign_page
from blast_controller.ops.http.answers import Page, sent, text, with_headers
from blast_controller.ops.http.sessions import COOKIE, IDLE_SECONDS
from blast_controller.ops.live.actions import Actions
from blast_controller.ops.live.broadcast import LiveBroadcast, PageLimitError, PageListener, event_of
from blast_controller.ops.live.calling import called
from blast_controller.ops.live.timeline import TimelineReader
from blast_controller.ops.live.vitals_publisher import VitalsPublisher
from blast_controller.ops.page.files import CONTENT_SECURITY_POLICY, PAGE, PageFile
from blast_controller.rpc.clients.identity import Role

MAX_EXPLANATIONS = 8
"""At a time: each takes a look of the thread that decides."""


@dataclass(frozen=True, slots=True)
class LivePage:
    """The parts of the page.

    `files` are its files by name, `broadcast` sends its updates, `signs` are the vital signs, `actions` the actions of
    operators, and `picture` returns the picture of the fabric; `release` is that of the program, and `recording` the
    recording's file, if any.
    """

    files: Mapping[str, PageFile]
    broadcast: LiveBroadcast
    signs: VitalsPublisher
    actions: Actions
    picture: Callable[[], bytes]
    release: str
    recording: Path | None = None


def live_routes(page: LivePage, access: HttpAccess) -> list[Route]:
    """Return the routes of the page."""
    found, back = _Routes(page, access), TimelineReader(page.recording, access)
    pages: list[tuple[str, str, Page]] = [
        ("GET", "/session", found.session),
        ("POST", "/session", found.log_in),
        ("DELETE", "/session", found.log_out),
        ("GET", "/picture", found.picture),
        ("GET", "/stream", found.stream),
        ("GET", "/explain", found.explain),
        ("GET", "/past", back.past),
        ("GET", "/past/at", back.at),
        ("GET", "/past/changes", back.changes),
        ("GET", "/actions/{name}/foretold", found.foretell),
        ("POST", "/actions/{name}", found.act),
        *(("GET", "/" if name == PAGE else f"/static/{name}", _served(file)) for name, file in page.files.items()),
    ]
    return [Route(path, with_headers(endpoint), methods=[method]) for method, path, endpoint in pages]


def _served(file: PageFile) -> Page:
    headers = {
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
        "ETag": file.tag,
    }

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, headers={**headers, "Content-Type": file.content_type})

    return serve


class _Routes:
    def __init__(self, page: LivePage, access: HttpAccess) -> None:
        self._page = page
        self._access = access
        self._explaining = asyncio.Semaphore(MAX_EXPLANATIONS)

    # ------------------------------------------------------------------------------------------------- sessions

    async def session(self, request: Request) -> Response:
        """Return the session; without a credential an empty one, not an error."""
        try:
            visitor = await self._access.visitor(request)
        except HTTPException as error:
            if error.status_code != 401:
                raise
            return JSONResponse(self._session_answer(None))
        if visitor.proved and visitor.session is None and not visitor.bearer:
            return self._begun(request, visitor, None)
        return JSONResponse(self._session_answer(visitor))

    async def log_in(self, request: Request) -> Response:
        """Begin a session for a token: from here on the cookie stands for it."""
        refuse_foreign_page(request)
        digest = await self._access.known_digest(text(await sent(request), "token"))
        visitor = self._access.with_token(request, digest)
        return self._begun(request, visitor, digest)

    def _begun(self, request: Request, visitor: Visitor, digest: bytes | None) -> Response:
        self._access.sessions.close(request.cookies.get(COOKIE))
        name, session = self._access.sessions.open(digest)
        response = JSONResponse(self._session_answer(visitor.within(session)))
        secure = request.scope["scheme"] == "https"
        response.set_cookie(COOKIE, name, int(IDLE_SECONDS), secure=secure, httponly=True, samesite="strict")
        return response

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        refuse_foreign_page(request)
        self._access.sessions.close(request.cookies.get(COOKIE))
        response = JSONResponse(self._session_answer(None))
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    def _session_answer(self, visitor: Visitor | None) -> dict[str, object]:
        answer: dict[str, object] = {
            "role": None,
            "name": "not logged in",
            "tenant": None,
            "csrf": None,
            "login": self._access.takes_tokens,
            "release": self._page.release,
        }
        if visitor is not None:
            identity = visitor.identity
            # An unauthenticated local client may only view here and act by other routes.
            role = identity.role if visitor.proved else Role.VIEWER
            answer |= {"role": role.name.lower(), "name": str(identity), "tenant": identity.only_tenant}
            answer["csrf"] = visitor.session.csrf if visitor.session is not None else None
        return answer

    # -------------------------------------------------------------------------------------------------- looking

    async def picture(self, request: Request) -> Response:
        """Return the layout of the picture."""
        await self._access.visitor(request)
        return Response(await asyncio.to_thread(self._page.picture), headers={"Content-Type": "application/json"})

    async def stream(self, request: Request) -> Response:
        """Yield the complete state, and then changes."""
        visitor = await self._access.visitor(request)
        try:
            account = account_of(visitor, request.client.host if request.client else "")
            listener = self._page.broadcast.open(visitor.identity.only_tenant, account, visitor.is_operator)
        except PageLimitError as error:
            raise HTTPException(503, str(error), {"Retry-After": "5"}) from None
        headers = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._events(request, visitor, listener), headers=headers)

    async def _events(self, request: Request, visitor: Visitor, listener: PageListener) -> AsyncIterator[bytes]:
        page, audience = self._page, listener.audience
        try:
            yield b"retry: 500\n\n"
            while True:
                if listener.needs_whole:
                    listener.needs_whole = False
                    yield page.broadcast.whole(audience)
                    yield event_of("vitals", page.signs.whole(audience))
                events = await listener.get()
                if not self._access.is_still(request, visitor):
                    yield event_of("goodbye", {"message": "Your session expired: log in again."})
                    return
                if not listener.needs_whole or listener.ended:
                    yield b"".join(events)
                if listener.ended:
                    return
        finally:
            page.broadcast.close(listener)

    async def explain(self, request: Request) -> Response:
        """Explain the state of a request."""
        visitor = await self._access.visitor(request)
        tenant, key = (text(dict(request.query_params), name) for name in ("tenant", "key"))
        if self._explaining.locked():
            raise HTTPException(503, "Too many explanations: try again in a second.", {"Retry-After": "1"})
        async with self._explaining:
            found = await called(self._page.actions.call, visitor, request, "explain", f"{tenant}/{key}")
        return JSONResponse({"message": found.message, "suggestion": found.suggestion})

    # ------------------------------------------------------------------------------------------------ operators

    async def foretell(self, request: Request) -> Response:
        """Preview an action."""
        visitor = await self._access.visitor(request, Role.OPERATOR)
        given = dict(request.query_params)
        foretold = await self._page.actions.foretell(visitor, request, given)
        return JSONResponse({"messages": foretold.sentences, "possible": foretold.possible})

    async def act(self, request: Request) -> Response:
        """Carry out an action of an operator."""
        visitor = await self._access.acting(request)
        sentence = await self._page.actions.do(visitor, request, await sent(request))
        return JSONResponse({"message": sentence})
