"""etcd's keys with their revisions: what is there now, what was, and what a transaction makes of it."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from blast_controller.store.etcd.errors import LeaseGone, RequestRefused, RevisionGone
from blast_controller.store.etcd.proto import etcd_pb2 as api

MOST_OPERATIONS = 128
NAME = "the modelled etcd"


@dataclass(slots=True)
class _Past:
    """What a key was, from each of these revisions on."""

    revisions: list[int] = field(default_factory=list)
    values: list[api.KeyValue | None] = field(default_factory=list)

    def at(self, revision: int) -> api.KeyValue | None:
        found = bisect.bisect_right(self.revisions, revision)
        return self.values[found - 1] if found else None

    def write(self, revision: int, value: api.KeyValue | None) -> None:
        if self.revisions and self.revisions[-1] == revision:
            self.values[-1] = value
        else:
            self.revisions.append(revision)
            self.values.append(value)


class Keys:
    """`lease_of` knows which leases there are, and which keys go with each."""

    def __init__(self, revision: int = 1) -> None:
        self.revision = revision
        self.compacted = 0
        self.lease_of: dict[int, set[bytes]] = {}
        self._now: dict[bytes, api.KeyValue] = {}
        self._sorted: list[bytes] = []
        self._past: dict[bytes, _Past] = {}

    def value(self, key: bytes) -> api.KeyValue | None:
        """A key as it is."""
        return self._now.get(key)

    def last_change(self, key: bytes) -> int:
        """The latest revision at which a key was written or went; 0: never."""
        past = self._past.get(key)
        return past.revisions[-1] if past else 0

    # ------------------------------------------------------------------------------------------------------ reading

    def range(self, request: api.RangeRequest) -> api.RangeResponse:
        """Raises RevisionGone."""
        if 0 < request.revision < self.compacted:
            raise RevisionGone
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
        for key in self._within(request.key, request.range_end) if is_now else sorted(self._past):
            if is_now:
                yield self._now[key]
            elif _contains(request.key, request.range_end, key):
                value = self._past[key].at(request.revision)
                if value is not None:
                    yield value

    def _within(self, key: bytes, end: bytes) -> list[bytes]:
        if not end:
            return [key] if key in self._now else []
        first, last = bisect.bisect_left(self._sorted, key), bisect.bisect_left(self._sorted, end)
        return self._sorted[first:last]

    # ------------------------------------------------------------------------------------------------------ writing

    def transaction(self, request: api.TxnRequest) -> api.TxnResponse:
        """All of it or, where it raises, nothing. Raises RequestRefused, LeaseGone, RevisionGone."""
        _check(request)
        self._check_leases(request)
        change = _Change(self)
        answer = change.carry_out(request)
        if change.is_one:
            self.revision += 1
        answer.header.revision = self.revision
        return answer

    def drop(self, keys: Iterable[bytes]) -> None:
        """The keys of a lease that is over go, all at one revision."""
        gone = [key for key in keys if key in self._now]
        if gone:
            for key in gone:
                self._write(key, None, self.revision + 1)
            self.revision += 1

    def compact(self, revision: int) -> None:
        """Forget how keys were before `revision`. Raises RevisionGone."""
        if revision <= self.compacted:
            raise RevisionGone
        self.compacted = revision
        for key, past in list(self._past.items()):
            kept = max(0, bisect.bisect_right(past.revisions, revision) - 1)
            del past.revisions[:kept], past.values[:kept]
            if past.values == [None] and past.revisions[0] < revision:
                del self._past[key]

    def _check_leases(self, request: api.TxnRequest) -> None:
        # What a branch that is not taken names is not looked at.
        for operation in _operations(self.branch(request)):
            if operation.HasField("request_put"):
                lease = operation.request_put.lease
                if lease and lease not in self.lease_of:
                    raise LeaseGone

    def branch(self, request: api.TxnRequest) -> Sequence[api.RequestOp]:
        """What is to be done as things stand."""
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
        if (before is None) != (value is None):
            place = bisect.bisect_left(self._sorted, key)
            if value is None:
                del self._sorted[place]
            else:
                self._sorted.insert(place, key)
        self._past.setdefault(key, _Past()).write(revision, value)


@dataclass(slots=True)
class _Change:
    """A transaction being carried out; `is_one`: it has changed something."""

    keys: Keys
    is_one: bool = False

    def carry_out(self, request: api.TxnRequest) -> api.TxnResponse:
        branch = self.keys.branch(request)
        return api.TxnResponse(succeeded=branch is request.success, responses=[self._one(one) for one in branch])

    def _one(self, operation: api.RequestOp) -> api.ResponseOp:
        keys = self.keys
        match operation.WhichOneof("request"):
            case "request_range":
                return api.ResponseOp(response_range=keys.range(operation.request_range))
            case "request_put":
                keys._put(operation.request_put, keys.revision + 1)
                self.is_one = True
                return api.ResponseOp(response_put=api.PutResponse())
            case "request_delete_range":
                wanted = operation.request_delete_range
                gone = keys._within(wanted.key, wanted.range_end)
                for key in list(gone):
                    keys._write(key, None, keys.revision + 1)
                self.is_one = self.is_one or bool(gone)
                return api.ResponseOp(response_delete_range=api.DeleteRangeResponse(deleted=len(gone)))
            case _:
                return api.ResponseOp(response_txn=self.carry_out(operation.request_txn))


def _operations(branch: Iterable[api.RequestOp]) -> Iterator[api.RequestOp]:
    for operation in branch:
        if operation.HasField("request_txn"):
            yield from _operations(operation.request_txn.success)
        else:
            yield operation


def puts_something(request: api.TxnRequest) -> bool:
    """Whether a transaction may take space."""
    branches = (request.success, request.failure)
    return any(one.HasField("request_put") for branch in branches for one in _operations(branch))


def _check(request: api.TxnRequest) -> None:
    for branch in (request.success, request.failure):
        if max(len(request.compare), len(branch)) > MOST_OPERATIONS:
            raise RequestRefused(NAME, "too many operations in txn request")
        _changed_by(branch)


def _changed_by(branch: Iterable[api.RequestOp]) -> tuple[set[bytes], list[api.DeleteRangeRequest]]:
    """The keys that are put and the ranges that are deleted; refused as etcd does (`checkIntervals`).

    A list in the list is looked at with what is deleted beside it, and in those before it: not in those after it.
    """
    operations = list(branch)
    puts: set[bytes] = set()
    gone = [one.request_delete_range for one in operations if one.HasField("request_delete_range")]
    for one in operations:
        if one.HasField("request_txn"):
            more, ranges = _changed_by(one.request_txn.success)
            _note_puts(puts, more, gone)
            gone += ranges
    for one in operations:
        if one.HasField("request_put"):
            _note_puts(puts, {one.request_put.key}, gone)
    return puts, gone


def _note_puts(puts: set[bytes], more: set[bytes], gone: Iterable[api.DeleteRangeRequest]) -> None:
    if puts & more or any(_contains(one.key, one.range_end, key) for one in gone for key in more):
        raise RequestRefused(NAME, "duplicate key given in txn request")
    puts |= more


def _contains(first: bytes, end: bytes, key: bytes) -> bool:
    return first <= key < end if end else key == first
