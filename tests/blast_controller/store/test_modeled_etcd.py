"""The modeled etcd answers every request of Blast's store as the real one does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from blast_controller.store.errors import JournalError
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.methods import COMPACT, GRANT, KEEP_ALIVE, RANGE, REVOKE, TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import changed_at, created_at, delete, delete_all, get, put, reading
from tests.support.controller.etcd_server import Controllers
from tests.support.controller.modeled_etcd import InstantNetwork, ModeledConnection, ModeledEtcd

pytestmark = pytest.mark.etcd

NUMBERS = st.integers(0, 4)
LONG = 600
"""Seconds of a lease, which does not run out during a test."""


class Side:
    """One of the two etcds; revisions and leases are numbered from its first."""

    def __init__(self, connection: EtcdConnection | ModeledConnection, keys: Any) -> None:
        self._connection = connection
        self._keys = keys
        self._leases: list[int] = []
        self._base = connection.call(RANGE, get(keys.head)).header.revision

    def do(self, step: tuple) -> object:
        """Run a step; return its result in terms that both sides share, or the name of the journal's error."""
        try:
            return self._normalized(getattr(self, step[0])(*step[1:]))
        except JournalError as fault:
            return type(fault).__name__

    def transaction(self, compares: list, success: list, failure: list) -> api.TxnResponse:
        request = api.TxnRequest(
            compare=[self._compare(*one) for one in compares],
            success=[self._operation(one) for one in success],
            failure=[self._operation(one) for one in failure],
        )
        return self._connection.call(TXN, request)

    def range(self, first: int, limit: int, back: int, count_only: bool) -> api.RangeResponse:
        revision = 0 if back == 0 else max(1, self._revision() - back + 1)
        span = self._keys.states
        return self._connection.call(
            RANGE,
            api.RangeRequest(
                key=self._key(first), range_end=span.end, limit=limit, revision=revision, count_only=count_only
            ),
        )

    def grant(self) -> api.LeaseGrantResponse:
        answer = self._connection.call(GRANT, api.LeaseGrantRequest(TTL=LONG))
        self._leases.append(answer.ID)
        return answer

    def revoke(self, number: int) -> api.LeaseRevokeResponse:
        return self._connection.call(REVOKE, api.LeaseRevokeRequest(ID=self._lease(number)))

    def keep_alive(self, number: int) -> api.LeaseKeepAliveResponse:
        return self._connection.first(KEEP_ALIVE, api.LeaseKeepAliveRequest(ID=self._lease(number)))

    def compact(self, back: int) -> api.CompactionResponse:
        return self._connection.call(COMPACT, api.CompactionRequest(revision=self._revision() - back))

    def forget(self) -> int:
        """Compact all earlier revisions, which earlier examples may have done in part; return the current one."""
        self._connection.call(TXN, api.TxnRequest(success=[put(self._keys.head, b"here")]))
        self._base = self._revision()
        self._connection.call(COMPACT, api.CompactionRequest(revision=self._base))
        return self._base

    # ------------------------------------------------------------------------------------------------------- inside

    def _key(self, number: int) -> bytes:
        return self._keys.state(number)

    def _revision(self) -> int:
        return int(self._connection.call(RANGE, get(self._keys.head)).header.revision)

    def _lease(self, number: int) -> int:
        # Without a lease yet, use an unknown one.
        return self._leases[number % len(self._leases)] if self._leases else 12345

    def _compare(self, kind: str, number: int, is_right: bool) -> api.Compare:
        found = self._connection.call(RANGE, get(self._key(number))).kvs
        if kind == "created":
            return created_at(self._key(number), (found[0].create_revision if found else 0) + (not is_right))
        return changed_at(self._key(number), (found[0].mod_revision if found else 0) + (not is_right))

    def _operation(self, step: tuple) -> api.RequestOp:
        match step:
            case ("put", number, text, None):
                return put(self._key(number), text.encode())
            case ("put", number, text, lease):
                return put(self._key(number), text.encode(), self._lease(lease))
            case ("delete", number):
                return delete(self._key(number))
            case ("delete all",):
                return delete_all(self._keys.states)
            case ("get", number):
                return reading(get(self._key(number)))
            case ("nested", some):
                return api.RequestOp(request_txn=api.TxnRequest(success=[self._operation(one) for one in some]))
        raise AssertionError(step)

    def _normalized(self, answer: Any) -> object:
        match answer:
            case api.RangeResponse():
                revision = answer.header.revision
                return ("range", self._at(revision), answer.count, answer.more, [self._kv(kv) for kv in answer.kvs])
            case api.TxnResponse():
                return ("txn", self._at(answer.header.revision), answer.succeeded, self._responses(answer))
            case api.LeaseGrantResponse():
                return ("grant", answer.TTL, self._at(answer.header.revision))
            case api.LeaseKeepAliveResponse():
                return ("kept", answer.TTL)
        return (type(answer).__name__, self._at(answer.header.revision))

    def _responses(self, answer: api.TxnResponse) -> list:
        results = []
        for one in answer.responses:
            match one.WhichOneof("response"):
                case "response_range":
                    results.append([self._kv(kv) for kv in one.response_range.kvs])
                case "response_delete_range":
                    results.append(one.response_delete_range.deleted)
                case "response_txn":
                    results.append((one.response_txn.succeeded, self._responses(one.response_txn)))
                case other:
                    results.append(other)
        return results

    def _kv(self, kv: api.KeyValue) -> tuple:
        lease = self._leases.index(kv.lease) if kv.lease else None
        key = kv.key.rpartition(b"/")[2]
        return key, kv.value, self._at(kv.create_revision), self._at(kv.mod_revision), kv.version, lease

    def _at(self, revision: int) -> int:
        return revision - self._base


PUTS = st.tuples(st.just("put"), NUMBERS, st.sampled_from(["a", "b", ""]), st.none() | st.integers(0, 2))
SIMPLE = PUTS | st.tuples(st.just("delete"), NUMBERS) | st.just(("delete all",)) | st.tuples(st.just("get"), NUMBERS)
OPERATIONS = st.lists(SIMPLE | st.tuples(st.just("nested"), st.lists(SIMPLE, max_size=3)), max_size=4)
COMPARES = st.lists(st.tuples(st.sampled_from(["created", "changed"]), NUMBERS, st.booleans()), max_size=2)
STEPS = st.lists(
    st.tuples(st.just("transaction"), COMPARES, OPERATIONS, OPERATIONS)
    | st.tuples(st.just("transaction"), st.just([]), st.lists(PUTS, min_size=1, max_size=2), st.just([]))
    | st.tuples(st.just("range"), NUMBERS, st.integers(0, 3), st.integers(0, 6), st.booleans())
    | st.just(("grant",))
    | st.tuples(st.just("revoke"), st.integers(0, 2))
    | st.tuples(st.just("keep_alive"), st.integers(0, 2))
    | st.tuples(st.just("compact"), st.integers(0, 3)),
    min_size=3,
    max_size=25,
)


PUT_THEN_DELETED = [("nested", [("put", 0, "a", None)]), ("nested", [("delete all",)])]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(
    [("transaction", [], PUT_THEN_DELETED, []), ("transaction", [], [], PUT_THEN_DELETED), ("range", 0, 3, 1, False)]
)
@example([("transaction", [], PUT_THEN_DELETED[::-1], []), ("range", 0, 3, 0, False)])
def test_modeled_etcd_answers_as_the_real_one(etcd, steps):
    controllers = Controllers(etcd, etcd.keys())
    try:
        real = Side(controllers.connection(), controllers.keys)
        modeled = ModeledEtcd(lambda: 0.0, revision=real.forget())
        modeled.keys.compacted = modeled.keys.revision
        model = Side(ModeledConnection(modeled, InstantNetwork()), controllers.keys)
        for step in steps:
            assert model.do(step) == real.do(step), step
    finally:
        controllers.close()
