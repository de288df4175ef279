"""Pieces of requests to etcd, and how many of them become one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from blast_controller.store.etcd.keys import KeySpan
from blast_controller.store.etcd.proto import etcd_pb2 as api

MAX_IN_A_LIST = 60
"""etcd takes 128 operations in one list (--max-txn-ops), from which it takes off what the list around it has."""
MAX_OPERATIONS = MAX_IN_A_LIST * MAX_IN_A_LIST
"""Of one transaction, as lists in a list."""


def get(key: bytes) -> api.RangeRequest:
    """Build the linearizable read of one key."""
    return api.RangeRequest(key=key)


def reading(request: api.RangeRequest) -> api.RequestOp:
    """Build a read as part of a transaction."""
    return api.RequestOp(request_range=request)


def put(key: bytes, value: bytes, lease: int = 0) -> api.RequestOp:
    """Build the write of `value` to `key`, bound to `lease` unless that is 0."""
    return api.RequestOp(request_put=api.PutRequest(key=key, value=value, lease=lease))


def delete(key: bytes) -> api.RequestOp:
    """Build the deletion of `key`."""
    return api.RequestOp(request_delete_range=api.DeleteRangeRequest(key=key))


def delete_all(span: KeySpan) -> api.RequestOp:
    """Build the deletion of all keys of a span."""
    return api.RequestOp(request_delete_range=api.DeleteRangeRequest(key=span.first, range_end=span.end))


def created_at(key: bytes, revision: int) -> api.Compare:
    """Build a comparison: `key` was created at `revision`; 0: it does not exist."""
    return api.Compare(target=api.Compare.CREATE, key=key, create_revision=revision)


def changed_at(key: bytes, revision: int) -> api.Compare:
    """Build a comparison: `key` was last written at `revision`; 0: it does not exist."""
    return api.Compare(target=api.Compare.MOD, key=key, mod_revision=revision)


def nested(operations: Sequence[api.RequestOp]) -> list[api.RequestOp]:
    """Nest at most MAX_OPERATIONS operations into one list that etcd accepts; all become part of one transaction."""
    if len(operations) <= MAX_IN_A_LIST:
        return list(operations)
    lists = (operations[begin : begin + MAX_IN_A_LIST] for begin in range(0, len(operations), MAX_IN_A_LIST))
    return [api.RequestOp(request_txn=api.TxnRequest(success=some)) for some in lists]


def grouped(operations: Iterable[api.RequestOp], max_bytes: int) -> Iterator[list[api.RequestOp]]:
    """Group operations into transactions of about `max_bytes`; a larger operation stands alone."""
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
