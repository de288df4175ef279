"""Pieces of requests to etcd, and how many of them become one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from blast_controller.store.etcd.keys import Span
from blast_controller.store.etcd.proto import etcd_pb2 as api

MAX_IN_A_LIST = 60
"""etcd takes 128 operations in one list (--max-txn-ops), from which it takes off what the list around it has."""
MAX_OPERATIONS = MAX_IN_A_LIST * MAX_IN_A_LIST
"""Of one transaction, as lists in a list."""


def get(key: bytes) -> api.RangeRequest:
    """One key as it is now, as most of its members know it."""
    return api.RangeRequest(key=key)


def reading(request: api.RangeRequest) -> api.RequestOp:
    """A look as part of a transaction."""
    return api.RequestOp(request_range=request)


def put(key: bytes, value: bytes, lease: int = 0) -> api.RequestOp:
    """`key` becomes `value`; it goes with `lease`, if that is not 0."""
    return api.RequestOp(request_put=api.PutRequest(key=key, value=value, lease=lease))


def delete(key: bytes) -> api.RequestOp:
    """`key` goes."""
    return api.RequestOp(request_delete_range=api.DeleteRangeRequest(key=key))


def delete_all(span: Span) -> api.RequestOp:
    """All keys of a span go."""
    return api.RequestOp(request_delete_range=api.DeleteRangeRequest(key=span.first, range_end=span.end))


def created_at(key: bytes, revision: int) -> api.Compare:
    """Holds while `key` is the one that came into being at `revision`; 0: while there is none."""
    return api.Compare(target=api.Compare.CREATE, key=key, create_revision=revision)


def changed_at(key: bytes, revision: int) -> api.Compare:
    """Holds while `key` was last written at `revision`; 0: while there is none."""
    return api.Compare(target=api.Compare.MOD, key=key, mod_revision=revision)


def nested(operations: Sequence[api.RequestOp]) -> list[api.RequestOp]:
    """At most MAX_OPERATIONS operations as one list that etcd takes; all become part of one transaction."""
    if len(operations) <= MAX_IN_A_LIST:
        return list(operations)
    lists = (operations[begin : begin + MAX_IN_A_LIST] for begin in range(0, len(operations), MAX_IN_A_LIST))
    return [api.RequestOp(request_txn=api.TxnRequest(success=some)) for some in lists]


def grouped(operations: Iterable[api.RequestOp], max_bytes: int) -> Iterator[list[api.RequestOp]]:
    """Operations in groups that each fit into a transaction of about `max_bytes`; one that is larger stands alone."""
    group: list[api.RequestOp] = []
    size = 0
    for operation in operations:
        its_size = operation.ByteSize()
        if group and (size + its_size > max_bytes or len(group) == MAX_OPERATIONS):
            yield group
            group, size = [], 0
        group.append(operation)
        size += its_size
    if group:
        yield group
