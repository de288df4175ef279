"""Which controllers could lead: each keeps a key of its own alive, with how many devices it reaches."""

from __future__ import annotations

from collections.abc import Mapping

from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import LeaseLostError
from blast_controller.store.etcd.history import whole
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.lease import Lease
from blast_controller.store.etcd.methods import RANGE, TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import put

TTL = 5
"""Seconds until a controller that disappeared no longer counts."""
MAX_CANDIDATES = 64
"""Candidates that one read returns."""


class Presence:
    """That of the controller at `address`. For one thread, but for `others`."""

    def __init__(self, connection: EtcdConnection, keys: Keys, address: str) -> None:
        self._connection = connection
        self._keys = keys
        self._address = address
        self._lease: Lease | None = None
        self._published: int | None = None

    def publish(self, reached: int) -> None:
        """Publish the number of devices connected to this controller. Raises JournalError."""
        if self._lease is None or not self._lease.holds():
            self._lease, self._published = Lease(self._connection, TTL), None
        if reached == self._published:
            return
        key = self._keys.candidate(self._address)
        try:
            self._connection.call(TXN, api.TxnRequest(success=[put(key, str(reached).encode(), self._lease.number)]))
        except LeaseLostError:
            self._lease = None
            raise
        self._published = reached

    def others(self) -> Mapping[str, int]:
        """Return the number of devices that each other candidate reaches, by address. Raises JournalError.

        Keys without a lease are ignored: such a key would stay forever, and each leader would step down for it.
        """
        span = self._keys.candidates
        answer = self._connection.call(
            RANGE, api.RangeRequest(key=span.first, range_end=span.end, limit=MAX_CANDIDATES)
        )
        own = self._keys.candidate(self._address)
        with whole(self._keys):
            return {
                kv.key.removeprefix(span.first).decode(): int(kv.value)
                for kv in answer.kvs
                if bytes(kv.key) != own and kv.lease
            }

    def leave(self) -> None:
        """End the candidacy."""
        if self._lease is not None:
            self._lease.revoke()
            self._lease = None
