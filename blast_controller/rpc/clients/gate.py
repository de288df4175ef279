"""The gate: asks of every call who makes it, takes logins, and makes guessing slow."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from blast_api import ttypes
from blast_controller.rpc.clients.access import AccessPolicy, refusal
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.rates import CallRates, Rate
from blast_controller.rpc.connections.connection import Connection, host_of

_log = logging.getLogger(__name__)

FIRST_REST = 0.25
LONGEST_REST = 8.0
"""Seconds that a connection is left alone after a failed login; each is twice the one before."""


@dataclass(slots=True)
class GateCounters:
    """Counts since the start."""

    logins: int = 0
    failed_logins: int = 0
    denied_calls: int = 0


class Gate:
    """Applies an access policy, and the minimum `roles` of methods, to connections. Safe for use from any thread.

    `policy` may be replaced at any time: every call uses the current policy, so that a removed token or rule is invalid
    at once, on open connections too.
    """

    def __init__(self, policy: AccessPolicy, roles: Mapping[str, Role | None], rate: Rate | None = None) -> None:
        self.policy = policy
        self._roles = roles
        self._rates = CallRates(rate or Rate())
        self.counters = GateCounters()
        self._lock = threading.Lock()

    def holder(self, connection: Connection) -> Hashable | None:
        """Return the account of a client's connection; None if it is not authenticated."""
        identity = self._identify(connection)
        return None if identity is None else _account(connection, identity)

    def check(self, connection: Connection, method: str) -> None:
        """Let a call pass. Raises Denied."""
        sentence = refusal(self._identify(connection), method, self._roles[method])
        if sentence is not None:
            self._deny(connection, sentence)

    def identity(self, connection: Connection) -> Identity:
        """Return the identity of a client. Raises Denied if it is not authenticated."""
        identity = self._identify(connection)
        if identity is None:
            self._deny(connection, "This connection is not authenticated: log in first.")
        return identity

    def account(self, connection: Connection) -> Hashable:
        """Return the account of a client's resources on the server: its tenant's, else its address's.

        Raises Denied as `identity` does.
        """
        return _account(connection, self.identity(connection))

    def admit(self, connection: Connection) -> None:
        """Count a call that costs the controller a decision or its journal an entry.

        Raises Rejected where the client's account has made too many, Denied as `identity` does.
        """
        account, now = self.account(connection), time.monotonic()
        with self._lock:
            seconds = self._rates.seconds_until_free(account, now)
        if seconds:
            connection.asked_too_much(now)
            raise ttypes.Rejected(
                "too_many_calls", f"Rate limit of your account exceeded: try again in {seconds:.1f} s."
            )

    def login(self, connection: Connection, token: str) -> None:
        """Take a token as credentials. Raises Denied, and lets the connection rest longer after each failure."""
        digest = self.policy.known_digest(token)
        if digest is None:
            connection.failed_logins += 1
            connection.rest = min(FIRST_REST * 2 ** (connection.failed_logins - 1), LONGEST_REST)
            with self._lock:
                self.counters.failed_logins += 1
            _log.warning(
                "%s: failed login number %d, next attempt delayed by %g s",
                connection.peer,
                connection.failed_logins,
                connection.rest,
            )
            raise ttypes.Denied("Unknown token: check it, or ask an operator for a valid one.")
        connection.token, connection.failed_logins = digest, 0
        with self._lock:
            self.counters.logins += 1
        _log.info("%s logged in as %s", connection.peer, self.policy.identify(connection.names, digest))

    def tenant_for(self, connection: Connection, asked: str | None) -> str:
        """Return the tenant of a new request. Raises Denied, Rejected, Unsupported."""
        identity, policy = self.identity(connection), self.policy
        if asked is None or asked == identity.tenant:
            return identity.tenant
        if "tenants" not in policy.features:
            raise _no_tenants(identity.tenant)
        if not identity.reaches(asked):
            self._deny(connection, f"Only an operator may act for another tenant, and this connection is {identity}.")
        if asked not in policy.tenants:
            raise ttypes.Rejected("unknown_tenant", f"There is no tenant {asked!r}: check the name.")
        return asked

    def tenant_to_list(self, connection: Connection, asked: str | None) -> str | None:
        """Return the tenant whose requests a client may list; None: all tenants. Raises Denied, Unsupported."""
        return self.identity(connection).only_tenant if asked is None else self.tenant_for(connection, asked)

    def _identify(self, connection: Connection) -> Identity | None:
        return self.policy.identify(connection.names, connection.token)

    def _deny(self, connection: Connection, sentence: str) -> NoReturn:
        with self._lock:
            self.counters.denied_calls += 1
        _log.info("%s denied: %s", connection.peer, sentence)
        raise ttypes.Denied(sentence)


def _account(connection: Connection, identity: Identity) -> Hashable:
    if connection.token is not None or connection.names:
        return identity.tenant
    return "address", host_of(connection)


def _no_tenants(only: str) -> Exception:
    error: Exception = ttypes.Unsupported(
        "tenants", f"This server has only the tenant {only!r}: leave the field tenant empty."
    )
    return error
