"""Authentication of HTTP requests by certificate, bearer token (RFC 6750) or session.

The policy is the same as for Thrift.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Scope

from blast_controller.ops.http.client_counts import ConnectionLimitError
from blast_controller.ops.http.protocol import CONNECTION, NAMES, Protocol
from blast_controller.ops.http.sessions import COOKIE, BrowserSession, Sessions, is_repeated
from blast_controller.rpc.clients.access import AccessPolicy
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.serving.admission_slots import host_of

REST = 0.25
"""Seconds before a wrong token is refused."""
MAX_RESTING = 32
"""The limit of clients with delayed logins; further ones are refused at once."""
CSRF_HEADER = "X-Blast-Csrf"


@dataclass(frozen=True, slots=True)
class Visitor:
    """The client of a request with its credential.

    `digest` is that of its token, which is the session's or (`bearer`) that of the request, None without one; `names`
    are those of a certificate; `session` is set for browsers.
    """

    identity: Identity
    digest: bytes | None
    names: frozenset[tuple[str, str]]
    session: BrowserSession | None
    bearer: bool

    def within(self, session: BrowserSession) -> Visitor:
        """Return the same, in a session."""
        return replace(self, session=session)

    @property
    def is_operator(self) -> bool:
        """Return true if the client may act."""
        return self.identity.role >= Role.OPERATOR

    @property
    def proved(self) -> bool:
        """Return true if the client is authenticated."""
        return self.digest is not None or bool(self.names)


class HttpAccess:
    """Applies the policy of the moment."""

    def __init__(self, policy: Callable[[], AccessPolicy]) -> None:
        self._policy = policy
        self._resting = asyncio.Semaphore(MAX_RESTING)
        self.sessions = Sessions()

    def knows(self, scope: Scope) -> bool:
        """Return true if a request has a known session, token or certificate, at no further cost."""
        request, policy = Request(scope), self._policy()
        session = self.sessions.find(request.cookies.get(COOKIE))
        token = bearer_of(request)
        digest = session.digest if session is not None else None if token is None else policy.known_digest(token)
        names = scope.get(NAMES, frozenset())
        return (digest is not None or bool(names)) and policy.identify(names, digest) is not None

    async def identity(self, request: Request, min_role: Role = Role.VIEWER) -> Identity:
        """Return the client's identity.

        Raises HTTPException: 401 if unknown, 403 if not permitted, 421 for an anonymous request by a foreign host name,
        429 while many wrong tokens are being refused, 503 if there are too many connections.
        """
        return (await self.visitor(request, min_role)).identity

    async def visitor(self, request: Request, min_role: Role = Role.VIEWER) -> Visitor:
        """Return the client with its credential. Raises HTTPException as `identity` does."""
        session = self.sessions.find(request.cookies.get(COOKIE))
        digest = None if session is None else session.digest
        if (token := bearer_of(request)) is not None:
            digest = await self.known_digest(token)
        visitor = self._visitor(request, digest, session, bearer=token is not None)
        await self._admit(request, visitor)
        if visitor.identity.role < min_role:
            raise HTTPException(403, f"This requires the role {min_role.name.lower()}, but you are {visitor.identity}.")
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
        except ConnectionLimitError as error:
            raise HTTPException(503, str(error), {"Retry-After": "5", "Connection": "close"}) from None

    def _visitor(self, request: Request, digest: bytes | None, session: BrowserSession | None, bearer: bool) -> Visitor:
        policy, names = self._policy(), request.scope.get(NAMES, frozenset())
        identity = policy.identify(names, digest)
        if identity is policy.anonymous and identity is not None:
            _refuse_foreign_name(request)
        if identity is None:
            raise _unknown(
                "Authentication required: present a client certificate, or send 'Authorization: Bearer TOKEN'."
            )
        return Visitor(identity, digest, names, session, bearer)

    def with_token(self, request: Request, digest: bytes) -> Visitor:
        """Return the client after a login with a token. Raises HTTPException."""
        return self._visitor(request, digest, None, bearer=False)

    async def acting(self, request: Request) -> Visitor:
        """Return an authenticated operator for an action, and refuse requests from pages of other sites.

        Raises HTTPException as `identity` does; 403 for a request of another site's page.
        """
        visitor = await self.visitor(request, Role.OPERATOR)
        if not visitor.proved:
            raise HTTPException(
                403,
                "This page is read-only without a login. To act here, configure [access] with a token file and "
                "log in, or use the `blast` command on the controller's machine.",
            )
        if not visitor.bearer:
            refuse_foreign_page(request)
            if visitor.session is None or not is_repeated(visitor.session, request.headers.get(CSRF_HEADER)):
                raise HTTPException(403, "The session expired or does not belong to this page: reload the page.")
        return visitor

    def is_still(self, request: Request, visitor: Visitor) -> bool:
        """Return true if the client is still valid: its session continues, and its token is still known."""
        session = visitor.session
        if session is not None and self.sessions.find(request.cookies.get(COOKIE)) is not session:
            return False
        return self._policy().identify(visitor.names, visitor.digest) == visitor.identity

    @property
    def takes_tokens(self) -> bool:
        """Return true if a login with a token is possible."""
        return bool(self._policy().tokens)

    async def known_digest(self, token: str) -> bytes:
        """Return the digest of a token that is known. Raises HTTPException, after a rest."""
        digest = self._policy().known_digest(token)
        if digest is not None:
            return digest
        if self._resting.locked():
            raise HTTPException(429, "Too many wrong tokens: try again later.", {"Retry-After": "1"})
        async with self._resting:
            await asyncio.sleep(REST)
        raise _unknown("Unknown token: check it, or create one with `blast controller hash-token`.")


def bearer_of(request: Request) -> str | None:
    """Return the token that a request bears (RFC 6750), None where it bears none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def refuse_foreign_page(request: Request) -> None:
    """Refuse what a page from elsewhere sends. Raises HTTPException."""
    origin = request.headers.get("origin")
    if origin is not None and _netloc(origin) != request.headers.get("host", "").lower():
        raise HTTPException(403, "Cross-site request refused: open the page from this controller.")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, "Cross-site request refused: open the page from this controller.")


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def account_of(visitor: Visitor, address: str) -> Hashable:
    """Return what a visitor's connections, pages and sessions are counted by; without a proof that is its host."""
    return visitor.digest or visitor.names or host_of(address)


def _refuse_foreign_name(request: Request) -> None:
    """Refuse a request by a foreign host name: DNS rebinding would let another site's page act for its viewer."""
    name = ""
    try:
        # Not `request.url`: its parsing fails, too, and is not expected to.
        name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        ip_address(name)
    except ValueError:
        if name != "localhost":
            raise HTTPException(421, "Unknown host name: use an IP address of this machine, or localhost.") from None


def _unknown(sentence: str) -> HTTPException:
    return HTTPException(401, sentence, {"WWW-Authenticate": "Bearer"})
