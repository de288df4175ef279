"""Who asks by HTTP: known by a certificate or a bearer token (RFC 6750), by the same policy as on Thrift."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ipaddress import ip_address

from starlette.exceptions import HTTPException
from starlette.requests import Request

from blast_controller.ops.http.protocol import NAMES
from blast_controller.rpc.clients.access import AccessPolicy
from blast_controller.rpc.clients.identity import Identity, Role

REST = 0.25
"""Seconds before a wrong token is refused."""
MOST_RESTING = 32
"""Of those at a time; others are refused at once, and told to come later."""


class HttpAccess:
    """Applies the policy of the moment."""

    def __init__(self, policy: Callable[[], AccessPolicy]) -> None:
        self._policy = policy
        self._resting = asyncio.Semaphore(MOST_RESTING)

    async def identity(self, request: Request, least: Role = Role.VIEWER) -> Identity:
        """Who asks. Raises HTTPException: 401 where that is not known, 403 where it may not, 429 for many guesses."""
        policy, digest = self._policy(), None
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            digest = policy.known_digest(token.strip())
            if digest is None:
                await self._let_rest()
                raise _unknown("The token is not known here.")
        identity = policy.identify(request.scope.get(NAMES, frozenset()), digest)
        if identity is policy.anonymous and identity is not None:
            _refuse_foreign_name(request)
        if identity is None:
            raise _unknown("Show a certificate that is known, or a token: 'Authorization: Bearer TOKEN'.")
        if identity.role < least:
            raise HTTPException(403, f"This is for the role {least.name.lower()}, and you are {identity}.")
        return identity

    async def _let_rest(self) -> None:
        if self._resting.locked():
            raise HTTPException(429, "Too many wrong tokens: come later.", {"Retry-After": "1"})
        async with self._resting:
            await asyncio.sleep(REST)


def _refuse_foreign_name(request: Request) -> None:
    """A page of somebody else's, whose name was made to mean this machine, asks in the name of whoever looks at it."""
    name = request.url.hostname or ""
    try:
        ip_address(name)
    except ValueError:
        if name != "localhost":
            raise HTTPException(421, "Ask by this machine's address, or as localhost.") from None


def _unknown(sentence: str) -> HTTPException:
    return HTTPException(401, sentence, {"WWW-Authenticate": "Bearer"})
