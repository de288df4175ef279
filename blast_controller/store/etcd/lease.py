"""A lease that is kept alive by a thread, and a pessimistic answer to whether it still holds."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress

from blast_controller.store.errors import JournalError
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.methods import GRANT, KEEP_ALIVE, REVOKE
from blast_controller.store.etcd.proto import etcd_pb2 as api

log = logging.getLogger(__name__)

BEATS = 5
"""Tries to keep it alive in its time to live."""
MARGIN = 0.15
"""Of the time to live, by which our clock may run slower than etcd's, and for what is written after having looked."""
REVOKING = 0.5
"""Seconds for letting go; after that etcd lets it run out by itself."""


def now() -> float:
    """Return the seconds of a clock that is never set and continues while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """A lease that etcd grants for `ttl` seconds, renewed until it is revoked or expires. Raises JournalError.

    etcd counts from the arrival of a request; counted from its sending, the lease never seems to last longer.
    """

    def __init__(self, connection: EtcdConnection, ttl: int) -> None:
        self._connection = connection
        asked = now()
        answer = connection.call(GRANT, api.LeaseGrantRequest(TTL=ttl))
        self.number: int = answer.ID
        # etcd makes it longer where its own elections take longer.
        self.ttl: int = answer.TTL
        self._until = asked + self.ttl
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="etcd lease", daemon=True)
        self._thread.start()

    def holds(self, margin: float = MARGIN) -> bool:
        """Return true if the lease is certainly still valid, without a query."""
        return not self._ended.is_set() and now() < self._until - margin * self.ttl

    def revoke(self) -> None:
        """Let go at once of all that it keeps; where etcd is away it runs out by itself."""
        self._ended.set()
        with suppress(JournalError):
            self._connection.call(REVOKE, api.LeaseRevokeRequest(ID=self.number), REVOKING)
        self._thread.join()

    def _keep(self) -> None:
        interval = self.ttl / BEATS
        was_kept = True
        while not self._ended.wait(interval) and not self._connection.is_closed:
            asked = now()
            try:
                answer = self._connection.first(KEEP_ALIVE, api.LeaseKeepAliveRequest(ID=self.number), 2 * interval)
            except JournalError as fault:
                # Once: it may last for hours.
                if was_kept and not self._ended.is_set():
                    log.warning("the lease in etcd could not be renewed: %s", fault)
                was_kept = False
                continue
            if answer.TTL <= 0:
                log.warning("the lease in etcd expired")
                self._ended.set()
                return
            was_kept = True
            self._until = max(self._until, asked + answer.TTL)
