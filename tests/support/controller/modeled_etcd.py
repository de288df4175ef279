"""A model of etcd as Blast uses it, in memory and on any clock, with server, network and `Connection`."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from blast_controller.store.errors import JournalError
from blast_controller.store.etcd.access import EtcdTimeouts
from blast_controller.store.etcd.connection import PAUSE
from blast_controller.store.etcd.errors import (
    EtcdRefusalError,
    EtcdSpaceError,
    LeaseLostError,
    RevisionCompactedError,
    StoreUnavailableError,
)
from blast_controller.store.etcd.keys import LARGEST
from blast_controller.store.etcd.methods import COMPACT, GRANT, KEEP_ALIVE, RANGE, REVOKE, STATUS, TXN, EtcdMethod
from blast_controller.store.etcd.proto import etcd_pb2 as api

MAX_OPERATIONS = 128
NAME = "modeled:2379"
_DEFAULT_TIMEOUTS = EtcdTimeouts()

# --------------------------------------------------------------------------------------------------------------- keys


class Keys:
    """Keys and leases: `lease_of` has the leases, and the keys of each.

    `_past` has the values of each key, by first revision.
    """

    def __init__(self, revision: int = 1) -> None:
        self.revision = revision
        self.compacted = 0
        self.lease_of: dict[int, set[bytes]] = {}
        self._now: dict[bytes, api.KeyValue] = {}
        self._past: defaultdict[bytes, dict[int, api.KeyValue | None]] = defaultdict(dict)
        self._is_changed = False

    def last_change(self, key: bytes) -> int:
        """Return the latest revision at which a key was written or deleted; 0: never."""
        return max(self._past.get(key, ()), default=0)

    # ------------------------------------------------------------------------------------------------------ reading

    def range(self, request: api.RangeRequest) -> api.RangeResponse:
        """Return the keys of a range. Raises RevisionCompactedError."""
        if 0 < request.revision < self.compacted:
            raise RevisionCompactedError
        found = list(self._found(request))
        answer = api.RangeResponse(count=len(found))
        if request.count_only:
            return answer
        limit = request.limit or len(found)
        answer.kvs.extend(found[:limit])
        answer.more = len(found) > limit
        return answer

    def _found(self, request: api.RangeRequest) -> Iterator[api.KeyValue]:
        is_now = request.revision in {0, self.revision}
        if is_now:
            yield from map(self._now.__getitem__, self._within(request.key, request.range_end))
            return
        for key in sorted(key for key in self._past if _contains(request.key, request.range_end, key)):
            past = self._past[key]
            at = max((revision for revision in past if revision <= request.revision), default=0)
            if (value := past.get(at)) is not None:
                yield value

    def _within(self, key: bytes, end: bytes) -> list[bytes]:
        if not end:
            return [key] if key in self._now else []
        return sorted(one for one in self._now if key <= one < end)

    # ------------------------------------------------------------------------------------------------------ writing

    def transaction(self, request: api.TxnRequest) -> api.TxnResponse:
        """Apply a transaction, completely or not at all.

        Raises EtcdRefusalError, LeaseLostError, RevisionCompactedError.
        """
        _check(request)
        self._check_leases(request)
        self._is_changed = False
        answer = self._carry_out(request, self.revision + 1)
        self.revision += self._is_changed
        answer.header.revision = self.revision
        return answer

    def _carry_out(self, request: api.TxnRequest, revision: int) -> api.TxnResponse:
        branch = self.branch(request)
        responses = [self._do(operation, revision) for operation in branch]
        return api.TxnResponse(succeeded=branch is request.success, responses=responses)

    def _do(self, operation: api.RequestOp, revision: int) -> api.ResponseOp:
        match operation.WhichOneof("request"):
            case "request_range":
                return api.ResponseOp(response_range=self.range(operation.request_range))
            case "request_put":
                self._put(operation.request_put, revision)
                return api.ResponseOp(response_put=api.PutResponse())
            case "request_delete_range":
                deletion = operation.request_delete_range
                removed = self._within(deletion.key, deletion.range_end)
                for key in removed:
                    self._write(key, None, revision)
                return api.ResponseOp(response_delete_range=api.DeleteRangeResponse(deleted=len(removed)))
            case _:
                return api.ResponseOp(response_txn=self._carry_out(operation.request_txn, revision))

    def drop(self, keys: Iterable[bytes]) -> None:
        """Delete the keys of a lease that is over, all at one revision."""
        removed = [key for key in keys if key in self._now]
        if removed:
            for key in removed:
                self._write(key, None, self.revision + 1)
            self.revision += 1

    def compact(self, revision: int) -> None:
        """Forget the values of keys before `revision`. Raises RevisionCompactedError."""
        if revision <= self.compacted:
            raise RevisionCompactedError
        self.compacted = revision
        for key, past in list(self._past.items()):
            latest = max((one for one in past if one <= revision), default=0)
            is_deleted = past.get(latest) is None and latest < revision
            self._past[key] = {at: value for at, value in past.items() if at >= latest + is_deleted}
            if not self._past[key]:
                del self._past[key]

    def _check_leases(self, request: api.TxnRequest) -> None:
        # etcd does not check names in a branch that is not taken.
        for operation in _operations(self.branch(request)):
            if operation.HasField("request_put"):
                lease = operation.request_put.lease
                if lease and lease not in self.lease_of:
                    raise LeaseLostError

    def branch(self, request: api.TxnRequest) -> Sequence[api.RequestOp]:
        """Return the operations of the branch that is taken."""
        return request.success if all(map(self._holds, request.compare)) else request.failure

    def _holds(self, compare: api.Compare) -> bool:
        assert compare.result == api.Compare.EQUAL, "Blast compares for equality only"
        found = self._now.get(compare.key)
        if compare.target == api.Compare.CREATE:
            return (found.create_revision if found else 0) == compare.create_revision
        assert compare.target == api.Compare.MOD, "Blast compares revisions only"
        return (found.mod_revision if found else 0) == compare.mod_revision

    def _put(self, request: api.PutRequest, revision: int) -> None:
        before = self._now.get(request.key)
        value = api.KeyValue(
            key=request.key,
            value=request.value,
            lease=request.lease,
            create_revision=before.create_revision if before else revision,
            mod_revision=revision,
            version=before.version + 1 if before else 1,
        )
        self._write(request.key, value, revision)
        if request.lease:
            self.lease_of[request.lease].add(request.key)

    def _write(self, key: bytes, value: api.KeyValue | None, revision: int) -> None:
        before = self._now.pop(key, None)
        if before is not None and before.lease in self.lease_of:
            self.lease_of[before.lease].discard(key)
        if value is not None:
            self._now[key] = value
        self._past[key][revision] = value
        self._is_changed = True


def _operations(branch: Iterable[api.RequestOp]) -> Iterator[api.RequestOp]:
    for operation in branch:
        if operation.HasField("request_txn"):
            yield from _operations(operation.request_txn.success)
        else:
            yield operation


def puts_something(request: api.TxnRequest) -> bool:
    """Return True if a transaction may take space."""
    branches = (request.success, request.failure)
    return any(one.HasField("request_put") for branch in branches for one in _operations(branch))


def _check(request: api.TxnRequest) -> None:
    for branch in (request.success, request.failure):
        if max(len(request.compare), len(branch)) > MAX_OPERATIONS:
            raise EtcdRefusalError(NAME, "too many operations in txn request")
        _changed_by(branch)


def _changed_by(branch: Iterable[api.RequestOp]) -> tuple[set[bytes], list[api.DeleteRangeRequest]]:
    """Return the keys that a branch puts and the ranges that it deletes.

    Raises EtcdRefusalError for the duplicate keys that etcd rejects (`checkIntervals`): a nested transaction is
    compared with the deletions beside it and those of the nested transactions before it, but not of the ones after it.
    """
    operations = list(branch)
    puts: set[bytes] = set()
    removed = [one.request_delete_range for one in operations if one.HasField("request_delete_range")]
    for one in operations:
        if one.HasField("request_txn"):
            more, ranges = _changed_by(one.request_txn.success)
            _note_puts(puts, more, removed)
            removed += ranges
    for one in operations:
        if one.HasField("request_put"):
            _note_puts(puts, {one.request_put.key}, removed)
    return puts, removed


def _note_puts(puts: set[bytes], more: set[bytes], deleted: Iterable[api.DeleteRangeRequest]) -> None:
    if puts & more or any(_contains(one.key, one.range_end, key) for one in deleted for key in more):
        raise EtcdRefusalError(NAME, "duplicate key given in txn request")
    puts |= more


def _contains(first: bytes, end: bytes, key: bytes) -> bool:
    return first <= key < end if end else key == first


# ------------------------------------------------------------------------------------------------------------- server


@dataclass(slots=True)
class _Lease:
    """A lease that its holder may extend until `deadline`; it ends at `ends`, as etcd checks every half second."""

    ttl: int
    deadline: float
    ends: float


class ModeledEtcd:
    """A model of all members of an etcd together. `clock` is in seconds; `lag` delays the expiry of a lease.

    While it `is_full` (alarm NOSPACE), it refuses requests that need space. It calls `on_change` after a possible
    change of a key; a caller that waits for the expiry of a lease calls `run_out` at `next_end`.
    """

    def __init__(self, clock: Callable[[], float], lag: Callable[[], float] = lambda: 0.0, revision: int = 1) -> None:
        self.keys = Keys(revision)
        self.is_full = False
        self.on_change: Callable[[], None] = lambda: None
        self._clock = clock
        self._lag = lag
        self._leases: dict[int, _Lease] = {}
        self._numbers = itertools.count(7_000_000)

    def answer(self, method: EtcdMethod[Any, Any], request: Any) -> Any:
        """Execute a call. Raises the JournalError that corresponds to etcd's refusal."""
        self.run_out()
        if self.is_full and (method is GRANT or (method is TXN and puts_something(request))):
            raise EtcdSpaceError(NAME)
        try:
            found = _ANSWERS[method.path](self, request)
        finally:
            self.on_change()
        return found

    def next_end(self) -> float | None:
        """Return the time at which the next lease ends."""
        return min((lease.ends for lease in self._leases.values()), default=None)

    def run_out(self) -> None:
        """End the leases whose time is over."""
        now = self._clock()
        for number in sorted(self._leases, key=lambda number: (self._leases[number].ends, number)):
            if self._leases[number].ends <= now:
                self._end(number)

    def elect(self) -> None:
        """Elect another member, which restarts all leases with their whole time: it does not know the rest."""
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
        number, ttl = next(self._numbers), max(request.TTL, 1)
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
            raise LeaseLostError
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


_ANSWERS: dict[str, Callable[[ModeledEtcd, Any], Any]] = {
    RANGE.path: ModeledEtcd._range,
    TXN.path: lambda etcd, request: etcd.keys.transaction(request),
    COMPACT.path: ModeledEtcd._compact,
    GRANT.path: ModeledEtcd._grant,
    REVOKE.path: ModeledEtcd._revoke,
    KEEP_ALIVE.path: ModeledEtcd._keep_alive,
    STATUS.path: ModeledEtcd._status,
}


# --------------------------------------------------------------------------------------------------------- connection


class UnansweredError(Exception):
    """No answer to one attempt; `is_surely_not_done` if the other side cannot have received it, and never will."""

    def __init__(self, reason: str, is_surely_not_done: bool = False) -> None:
        super().__init__(reason)
        self.is_surely_not_done = is_surely_not_done


class InstantNetwork:
    """The network between a client and etcd, and its delays: none here, so that nothing waits.

    Subclasses override all methods.
    """

    def now(self) -> float:
        """Return the seconds of the clock of the client."""
        return 0.0

    def carry(self, act: Callable[[], Any], seconds: float) -> Any:
        """Run `act` at the server, and return its result or raise its exception; a subclass may run it twice or never.

        Raises UnansweredError within `seconds`.
        """
        return act()

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        raise AssertionError("there is nothing to wait for")

    def wait_for_change(self, until: float) -> None:
        """Wait until something at the server may have changed, or until a time."""
        self.pause(until)


class ModeledConnection:
    """An implementation of `Connection` whose answers equal those of a real one, except the messages of faults."""

    def __init__(self, etcd: ModeledEtcd, network: InstantNetwork, timeouts: EtcdTimeouts = _DEFAULT_TIMEOUTS) -> None:
        self.timeouts = timeouts
        self.is_closed = False
        self._etcd = etcd
        self._network = network

    def __str__(self) -> str:
        return NAME

    def call(self, method: EtcdMethod[Any, Any], request: Any, seconds: float | None = None) -> Any:
        """Implement `Connection.call`."""
        network, may_be_done, reason = self._network, False, "no answer in time"
        end = network.now() + (self.timeouts.in_all if seconds is None else seconds)
        while (left := end - network.now()) > 0 and not self.is_closed:
            try:
                return network.carry(lambda: self._etcd.answer(method, request), min(left, self.timeouts.at_one))
            except UnansweredError as fault:
                reason = str(fault)
                may_be_done = may_be_done or not fault.is_surely_not_done
            except JournalError as fault:
                raise (StoreUnavailableError(NAME, reason) if may_be_done else fault) from fault
            network.pause(min(PAUSE, left))
        raise StoreUnavailableError(NAME, reason, may_be_done)

    first = call

    def stream(self, _: EtcdMethod[Any, Any], request: api.WatchRequest, seconds: float) -> ModeledStream:
        """Return a watch of one key, as `Watching` requests it."""
        create = request.create_request
        return ModeledStream(self, create.key, create.start_revision, self._network.now() + seconds)

    def close(self) -> None:
        """Answer nothing any more."""
        self.is_closed = True

    def changed_since(self, key: bytes, revision: int) -> bool:
        """Return True if a key was written or deleted at that revision or later; False without an answer."""
        network = self._network
        try:
            return bool(network.carry(lambda: self._changed(key, revision), self.timeouts.at_one))
        except UnansweredError:
            return False

    def _changed(self, key: bytes, revision: int) -> bool:
        self._etcd.run_out()
        return self._etcd.keys.last_change(key) >= revision


class ModeledStream(Iterator[api.WatchResponse]):
    """The events of one key; ends with its time, or when it is cancelled."""

    def __init__(self, connection: ModeledConnection, key: bytes, revision: int, until: float) -> None:
        self._connection = connection
        self._key, self._revision, self._until = key, revision, until

    def __next__(self) -> api.WatchResponse:
        network = self._connection._network
        while network.now() < self._until and not self._connection.is_closed:
            if self._connection.changed_since(self._key, self._revision):
                self._revision = LARGEST
                return api.WatchResponse(events=[api.Event()])
            network.wait_for_change(self._until)
        raise StopIteration

    def cancel(self) -> None:
        """End it."""
        self._until = float("-inf")
