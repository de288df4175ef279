"""Who a client is, and what it may do: pure decisions, from what was proved to what is allowed.

A client proves who it is by a certificate or by a token. Each method of the service has a minimum role (methods.py); a
request belongs to a tenant, and its key means something within that tenant only.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from blast_controller.rpc.clients.identity import DEFAULT_TENANT, Identity, Role
from blast_controller.rpc.clients.tokens import digest_of
from blast_controller.serving.tls import CertificateNames


@dataclass(frozen=True, slots=True)
class CertificateRule:
    """Certificates that say all of `names` stand for `identity`."""

    names: CertificateNames
    identity: Identity


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Who is who. `anonymous` is what a client is that has proved nothing; the first rule that fits counts.

    `tenants` are all that are known; `features` are those of the interface that this policy amounts to.
    """

    anonymous: Identity | None = None
    rules: tuple[CertificateRule, ...] = ()
    tokens: Mapping[bytes, Identity] = field(default_factory=dict)
    tenants: frozenset[str] = frozenset({DEFAULT_TENANT})
    features: frozenset[str] = frozenset()

    def identify(self, names: CertificateNames, digest: bytes | None) -> Identity | None:
        """Who a client is that showed a certificate with `names` and logged in with the token of `digest`."""
        if digest is not None:
            # A token that was taken out of the policy since is worth no more than none.
            return self.tokens.get(digest)
        return next((rule.identity for rule in self.rules if rule.names <= names), self.anonymous)

    def known_digest(self, token: str) -> bytes | None:
        """The digest of a token that the policy knows; takes the same time whichever it is, if any."""
        digest, found = digest_of(token), None
        for known in self.tokens:
            if hmac.compare_digest(known, digest):
                found = known
        return found


OPEN_POLICY = AccessPolicy(anonymous=Identity(DEFAULT_TENANT, Role.OPERATOR))
"""Whoever can connect is an operator: only for a server that nobody but this machine's own users can reach."""


def refusal(identity: Identity | None, method: str, minimum: Role | None) -> str | None:
    """Why a client may not call a method, as one sentence; None if it may. `minimum` is the role that it takes."""
    if minimum is None or (identity is not None and identity.role >= minimum):
        return None
    needed = f"{method} is for clients with the role {minimum.name.lower()}"
    if identity is None:
        return f"{needed}, and this connection has not said who it is: log in, or show a certificate that is known."
    return f"{needed}, and this connection is {identity}."


def name_request(identity: Identity, text: str, is_known: bool) -> tuple[str, str]:
    """The tenant and key of the request that a client calls `text`: KEY, or TENANT/KEY where it may reach that tenant.

    `is_known` says whether its own tenant has a request with exactly this key, which is then the one.
    """
    tenant, slash, key = text.partition("/")
    if slash and not is_known and identity.reaches(tenant):
        return tenant, key
    return identity.tenant, text
