"""Calls of the interface's methods by other routes than Thrift, with the same roles and rules."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.handler import BlastHandler

Proof = tuple[str, frozenset[tuple[str, str]], bytes | None]
"""Credentials of the caller: the address, the names in a certificate, and the digest of a token."""


class Caller:
    """Calls methods for people who look at a page. To be used from a worker: some methods take a while."""

    def __init__(self, handler: BlastHandler, gate: Gate) -> None:
        self._handler = handler
        self._gate = gate

    def __call__(self, proof: Proof, method: str, arguments: tuple[object, ...]) -> Future[Any]:
        """Call a method. Raises, and settles with, what the interface declares for it."""
        peer, names, token = proof
        # A connection of its own: there is nothing that would have to be remembered from one call to the next.
        connection = Connection(0, peer, names)
        connection.token, connection.by_hand = token, True
        self._gate.check(connection, method)
        found = getattr(self._handler, method)(connection, *arguments)
        if isinstance(found, Future):
            return found
        done: Future[Any] = Future()
        done.set_result(found)
        return done
