"""Who asks by HTTP: known by a certificate, a bearer token (RFC 6750) or a session, by the same policy as on Thrift."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Scope

from blast_controller.ops.http.crowd import Crowded
from blast_controller.ops.http.protocol import CONNECTION, NAMES, Protocol
from blast_controller.ops.http.sessions import COOKIE, Session, Sessions, is_repeated
from blast_controller.rpc.clients.access import AccessPolicy
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.serving.places import host_of

REST = 0.25
"""Seconds before a wrong token is refused."""
MAX_RESTING = 32
"""Of those at a time; others are refused at once, and told to come later."""
CSRF_HEADER = "X-Blast-Csrf"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks, and what shows that: the digest of a token, of a session's or of its own (`bearer`), or what a
    certificate says; `session` is there for whoever uses a browser."""

    identity: Identity
    digest: bytes | None
    names: frozenset[tuple[str, str]]
    session: Session | None
    bearer: bool

    def within(self, session: Session) -> Visitor:
        """The same, in a session."""
        return replace(self, session=session)

    @property
    def is_operator(self) -> bool:
        """Whether it may act."""
        return self.identity.role >= Role.OPERATOR

    @property
    def proved(self) -> bool:
        """Whether it has proved who it is."""
        return self.digest is not None or bool(self.names)


class HttpAccess:
    """Applies the policy of the moment."""

    def __init__(self, policy: Callable[[], AccessPolicy]) -> None:
        self._policy = policy
        self._resting = asyncio.Semaphore(MAX_RESTING)
        self.sessions = Sessions()

    def knows(self, scope: Scope) -> bool:
        """Whether a request shows a session, a token or a certificate that is known; costs no more than that."""
        request, policy = Request(scope), self._policy()
        session = self.sessions.find(request.cookies.get(COOKIE))
        token = bearer_of(request)
        digest = session.digest if session is not None else None if token is None else policy.known_digest(token)
        names = scope.get(NAMES, frozenset())
        return (digest is not None or bool(names)) and policy.identify(names, digest) is not None

    async def identity(self, request: Request, least: Role = Role.VIEWER) -> Identity:
        """Who asks. Raises HTTPException: 401 where that is not known, 403 where it may not, 429 for many guesses."""
        return (await self.visitor(request, least)).identity

    async def visitor(self, request: Request, least: Role = Role.VIEWER) -> Visitor:
        """Who asks, and what shows that. Raises HTTPException as `identity` does."""
        session = self.sessions.find(request.cookies.get(COOKIE))
        digest = None if session is None else session.digest
        if (token := bearer_of(request)) is not None:
            digest = await self.known_digest(token)
        visitor = self._visitor(request, digest, session, bearer=token is not None)
        await self._admit(request, visitor)
        if visitor.identity.role < least:
            raise HTTPException(403, f"This is for the role {least.name.lower()}, and you are {visitor.identity}.")
        return visitor

    async def _admit(self, request: Request, visitor: Visitor) -> None:
        """Wait while the account asks too often. Raises HTTPException: 503 where it has too many connections."""
        connection: Protocol | None = request.scope.get(CONNECTION)
        if connection is None:
            return
        account = account_of(visitor, connection.address)
        # First the rate: to refuse costs as much as to answer.
        await connection.wait(account)
        try:
            connection.become(account, visitor.is_operator)
        except Crowded as error:
            raise HTTPException(503, str(error), {"Retry-After": "5", "Connection": "close"}) from None

    def _visitor(self, request: Request, digest: bytes | None, session: Session | None, bearer: bool) -> Visitor:
        policy, names = self._policy(), request.scope.get(NAMES, frozenset())
        identity = policy.identify(names, digest)
        if identity is policy.anonymous and identity is not None:
            _refuse_foreign_name(request)
        if identity is None:
            raise _unknown("Show a certificate that is known, or a token: 'Authorization: Bearer TOKEN'.")
        return Visitor(identity, digest, names, session, bearer)

    def with_token(self, request: Request, digest: bytes) -> Visitor:
        """Who asks, now that it has shown a token. Raises HTTPException."""
        return self._visitor(request, digest, None, bearer=False)

    async def acting(self, request: Request) -> Visitor:
        """Who wants something done: an operator who has proved it, and not a page of somebody else's in its name.

        Raises HTTPException as `identity` does; 403 for what a foreign page would send.
        """
        visitor = await self.visitor(request, Role.OPERATOR)
        if not visitor.proved:
            raise HTTPException(
                403,
                "Without a login this page only shows. To act by it, give the controller [access] with a token file "
                "and log in; `blast` does the same from this machine.",
            )
        if not visitor.bearer:
            refuse_foreign_page(request)
            if visitor.session is None or not is_repeated(visitor.session, request.headers.get(CSRF_HEADER)):
                raise HTTPException(403, "The session is over, or not this page's: load the page again.")
        return visitor

    def is_still(self, request: Request, visitor: Visitor) -> bool:
        """Whether by now somebody is who it was when it came: its session goes on, and its token is still known."""
        session = visitor.session
        if session is not None and self.sessions.find(request.cookies.get(COOKIE)) is not session:
            return False
        return self._policy().identify(visitor.names, visitor.digest) == visitor.identity

    @property
    def takes_tokens(self) -> bool:
        """Whether there is any token to log in with."""
        return bool(self._policy().tokens)

    async def known_digest(self, token: str) -> bytes:
        """The digest of a token that is known. Raises HTTPException, after a rest."""
        digest = self._policy().known_digest(token)
        if digest is not None:
            return digest
        if self._resting.locked():
            raise HTTPException(429, "Too many wrong tokens: come later.", {"Retry-After": "1"})
        async with self._resting:
            await asyncio.sleep(REST)
        raise _unknown("The token is not known here.")


def bearer_of(request: Request) -> str | None:
    """The token that a request bears (RFC 6750), None where it bears none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def refuse_foreign_page(request: Request) -> None:
    """Refuse what a page from elsewhere sends. Raises HTTPException."""
    origin = request.headers.get("origin")
    if origin is not None and _netloc(origin) != request.headers.get("host", "").lower():
        raise HTTPException(403, "This comes from a page of another site.")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, "This comes from a page of another site.")


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def account_of(visitor: Visitor, address: str) -> Hashable:
    """Return what a visitor's connections, pages and sessions are counted by; without a proof that is its host."""
    return visitor.digest or visitor.names or host_of(address)


def _refuse_foreign_name(request: Request) -> None:
    """A page of somebody else's, whose name was made to mean this machine, asks in the name of whoever looks at it."""
    name = ""
    try:
        # Not `request.url`: its parsing fails, too, and is not expected to.
        name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        ip_address(name)
    except ValueError:
        if name != "localhost":
            raise HTTPException(421, "Ask by this machine's address, or as localhost.") from None


def _unknown(sentence: str) -> HTTPException:
    return HTTPException(401, sentence, {"WWW-Authenticate": "Bearer"})
