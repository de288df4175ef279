"""The server: keys, and leases that run out on a clock which is given."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blast_controller.store.etcd.errors import LeaseGone, SpaceUsedUp
from blast_controller.store.etcd.methods import COMPACT, GRANT, KEEP_ALIVE, RANGE, REVOKE, STATUS, TXN, Method
from blast_controller.store.etcd.proto import etcd_pb2 as api
from tests.support.modelled_etcd.keys import NAME, Keys, puts_something


@dataclass(slots=True)
class _Lease:
    """Whoever has it may keep it until `deadline`; it is over at `ends`: etcd looks only every half second."""

    ttl: int
    deadline: float
    ends: float


class ModelledEtcd:
    """Answers as all members of an etcd together do. `clock` is in seconds; `lag` is how late a lease is seen to be over.

    While it `is_full` (alarm NOSPACE) it refuses what needs space. `on_change` is called after whatever may have changed a key; who waits for a lease to run out looks again by
    `run_out` at `next_end`.
    """

    def __init__(
        self, clock: Callable[[], float], lag: Callable[[], float] = lambda: 0.0, revision: int = 1, least_ttl: int = 1
    ) -> None:
        self.keys = Keys(revision)
        self.is_full = False
        self.on_change: Callable[[], None] = lambda: None
        self._clock = clock
        self._lag = lag
        self._least_ttl = least_ttl
        self._leases: dict[int, _Lease] = {}
        self._numbers = itertools.count(7_000_000)

    def answer(self, method: Method[Any, Any], request: Any) -> Any:
        """Carry out a call. Raises the StoreFault that etcd's refusal means."""
        self.run_out()
        if self.is_full and (method is GRANT or (method is TXN and puts_something(request))):
            raise SpaceUsedUp(NAME)
        try:
            found = _ANSWERS[method.path](self, request)
        finally:
            self.on_change()
        return found

    def next_end(self) -> float | None:
        """When the next lease is over, as things stand."""
        return min((lease.ends for lease in self._leases.values()), default=None)

    def run_out(self) -> None:
        """End the leases whose time is over."""
        now = self._clock()
        for number in sorted(self._leases, key=lambda number: (self._leases[number].ends, number)):
            if self._leases[number].ends <= now:
                self._end(number)

    def elect(self) -> None:
        """Another member leads: it gives all leases their whole time anew, and does not know how long they had left."""
        self.run_out()
        for number, lease in list(self._leases.items()):
            self._leases[number] = self._lease(lease.ttl)

    # ------------------------------------------------------------------------------------------------------- leases

    def _lease(self, ttl: int) -> _Lease:
        deadline = self._clock() + ttl
        return _Lease(ttl, deadline, deadline + self._lag())

    def _end(self, number: int) -> None:
        del self._leases[number]
        self.keys.drop(sorted(self.keys.lease_of.pop(number)))
        self.on_change()

    def _grant(self, request: api.LeaseGrantRequest) -> api.LeaseGrantResponse:
        number, ttl = next(self._numbers), max(request.TTL, self._least_ttl)
        self._leases[number] = self._lease(ttl)
        self.keys.lease_of[number] = set()
        return api.LeaseGrantResponse(header=self._header(), ID=number, TTL=ttl)

    def _keep_alive(self, request: api.LeaseKeepAliveRequest) -> api.LeaseKeepAliveResponse:
        lease = self._leases.get(request.ID)
        if lease is None or lease.deadline <= self._clock():
            return api.LeaseKeepAliveResponse(header=self._header(), ID=request.ID, TTL=0)
        self._leases[request.ID] = self._lease(lease.ttl)
        return api.LeaseKeepAliveResponse(header=self._header(), ID=request.ID, TTL=lease.ttl)

    def _revoke(self, request: api.LeaseRevokeRequest) -> api.LeaseRevokeResponse:
        if request.ID not in self._leases:
            raise LeaseGone
        self._end(request.ID)
        return api.LeaseRevokeResponse(header=self._header())

    # --------------------------------------------------------------------------------------------------------- keys

    def _range(self, request: api.RangeRequest) -> api.RangeResponse:
        found = self.keys.range(request)
        found.header.CopyFrom(self._header())
        return found

    def _compact(self, request: api.CompactionRequest) -> api.CompactionResponse:
        self.keys.compact(request.revision)
        return api.CompactionResponse(header=self._header())

    def _status(self, _: api.StatusRequest) -> api.StatusResponse:
        return api.StatusResponse(header=self._header())

    def _header(self) -> api.ResponseHeader:
        return api.ResponseHeader(revision=self.keys.revision)


_ANSWERS: dict[str, Callable[[ModelledEtcd, Any], Any]] = {
    RANGE.path: ModelledEtcd._range,
    TXN.path: lambda etcd, request: etcd.keys.transaction(request),
    COMPACT.path: ModelledEtcd._compact,
    GRANT.path: ModelledEtcd._grant,
    REVOKE.path: ModelledEtcd._revoke,
    KEEP_ALIVE.path: ModelledEtcd._keep_alive,
    STATUS.path: ModelledEtcd._status,
}
