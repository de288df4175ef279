"""Authentication and authorization of clients: pure functions from credentials to permissions.

A client authenticates with a certificate or a token. Each method of the service has a minimum role (methods.py); a
request belongs to a tenant, and its key is unique within that tenant only.
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
    """The rule that certificates with all of `names` belong to `identity`."""

    names: CertificateNames
    identity: Identity


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The identities of all credentials.

    `anonymous` is the identity without a credential; the first matching rule counts. `tenants` are all known ones;
    `features` are those of the interface that the policy provides.
    """

    anonymous: Identity | None = None
    rules: tuple[CertificateRule, ...] = ()
    tokens: Mapping[bytes, Identity] = field(default_factory=dict)
    tenants: frozenset[str] = frozenset({DEFAULT_TENANT})
    features: frozenset[str] = frozenset()

    def identify(self, names: CertificateNames, digest: bytes | None) -> Identity | None:
        """Return the identity of a client with the certificate `names` and the token of `digest`, or None."""
        if digest is not None:
            # A token that was taken out of the policy since is worth no more than none.
            return self.tokens.get(digest)
        return next((rule.identity for rule in self.rules if rule.names <= names), self.anonymous)

    def known_digest(self, token: str) -> bytes | None:
        """Return the digest of a token that the policy knows; takes the same time whichever it is, if any."""
        digest, found = digest_of(token), None
        for known in self.tokens:
            if hmac.compare_digest(known, digest):
                found = known
        return found


OPEN_POLICY = AccessPolicy(anonymous=Identity(DEFAULT_TENANT, Role.OPERATOR))
"""Every client is an operator: only for a server that is reachable from this machine alone."""


def refusal(identity: Identity | None, method: str, minimum: Role | None) -> str | None:
    """Return why a client may not call a method, as one sentence; None if it may. `minimum` is the required role."""
    if minimum is None or (identity is not None and identity.role >= minimum):
        return None
    needed = f"{method} requires the role {minimum.name.lower()}"
    if identity is None:
        return f"{needed}, and this connection is not authenticated: log in, or present a known certificate."
    return f"{needed}, and this connection is {identity}."


def name_request(identity: Identity, text: str, is_known: bool) -> tuple[str, str]:
    """Return the tenant and key of the request that a client names `text`: KEY, or TENANT/KEY of an accessible tenant.

    `is_known` is true if the client's own tenant has a request with exactly this key, which then takes precedence.
    """
    tenant, slash, key = text.partition("/")
    if slash and not is_known and identity.reaches(tenant):
        return tenant, key
    return identity.tenant, text
