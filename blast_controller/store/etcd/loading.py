"""Reads the whole state of a journal from etcd, as it was at one revision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from blast_controller.core.model.records import Body
from blast_controller.store.checksums import Sum, thing_digest
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import DamagedEtcdJournalError
from blast_controller.store.etcd.history import whole
from blast_controller.store.etcd.keys import Keys, KeySpan, number_of
from blast_controller.store.etcd.methods import RANGE, TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import get, reading
from blast_controller.store.etcd.values import Head, to_thing

PAGE = 500
"""Keys read at a time."""
MAX_ANSWER_BYTES = 16 << 20
"""Above this the next pages are smaller: a thing may have a megabyte."""


@dataclass(slots=True)
class JournalState:
    """The state of a journal.

    `bodies` has the objects by kind and key in order of creation, `firsts` the sequences of their first entries,
    `digests` their digests, and `holders` the reservation that holds each element.
    """

    bodies: dict[str, dict[str, Body]] = field(default_factory=dict)
    firsts: dict[tuple[str, str], int] = field(default_factory=dict)
    digests: dict[tuple[str, str], int] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)


def load(connection: EtcdConnection, keys: Keys, revision: int = 0, parts: Sequence[bytes] = ()) -> JournalState:
    """Load the state at `revision` (0: now), with these parts of a commit applied.

    Raises DamagedEtcdJournalError, JournalError.
    """
    state = JournalState()
    with whole(keys):
        values = {bytes(kv.key): kv.value for kv in pages(connection, keys.states, revision)}
        for part in parts:
            _carry_out(parsed(part).success, values)
        for key in sorted(values):
            if not keys.states.first <= key < keys.states.end:
                continue
            thing, body = to_thing(number_of(key), values[key])
            name = (thing.kind, thing.key)
            if name in state.firsts or thing.elements & state.holders.keys():
                raise DamagedEtcdJournalError(
                    keys.prefix, f"the {thing.kind} {thing.key!r} is stored twice, or holds elements of another one"
                )
            state.bodies.setdefault(thing.kind, {})[thing.key] = body
            state.firsts[name] = thing.first
            state.digests[name] = thing_digest(*thing)
            state.holders.update(dict.fromkeys(thing.elements, thing.key))
    return state


def check_head(connection: EtcdConnection, keys: Keys, state: JournalState, head: Head, epoch: int | None) -> None:
    """Compare the head with state, history and epoch (that of the new leader; None: the journal is new).

    Raises DamagedEtcdJournalError if they contradict it, JournalError. The history's entries, which may be many, are
    only counted.
    """
    found = Sum()
    found.change((), state.digests.values())
    if head.state != found.total:
        raise DamagedEtcdJournalError(keys.prefix, CHANGED_STATE)
    history = api.RangeRequest(key=keys.histories.first, range_end=keys.histories.end, count_only=True)
    batches = connection.call(RANGE, history).count
    if head.batches != batches:
        raise DamagedEtcdJournalError(keys.prefix, f"its history has {batches} keys, and {head.batches} were written")
    if epoch is not None and epoch <= head.epoch:
        raise DamagedEtcdJournalError(keys.prefix, f"its epoch is {epoch - 1}, but epoch {head.epoch} was used already")


def _carry_out(operations: Iterable[api.RequestOp], values: dict[bytes, bytes]) -> None:
    """Apply the operations of a part to the values; repeating it changes nothing."""
    for operation in operations:
        match operation.WhichOneof("request"):
            case "request_put":
                values[operation.request_put.key] = operation.request_put.value
            case "request_delete_range":
                # A commit names each key that goes.
                values.pop(operation.request_delete_range.key, None)
            case _:
                _carry_out(operation.request_txn.success, values)


def parsed(part: bytes) -> api.TxnRequest:
    """Return a part of a commit. Raises ValueError."""
    try:
        request: api.TxnRequest = api.TxnRequest.FromString(part)
    except DecodeError as error:
        raise ValueError(f"a part of its latest commit: {error}") from error
    return request


def pages(connection: EtcdConnection, span: KeySpan, revision: int = 0, page: int = PAGE) -> Iterator[api.KeyValue]:
    """Yield all keys of a span in order, as they were at `revision` (0: when the first was read).

    Raises JournalError.
    """
    first = span.first
    while True:
        request = api.RangeRequest(key=first, range_end=span.end, limit=page, revision=revision)
        answer = connection.call(RANGE, request)
        yield from answer.kvs
        if not answer.more:
            return
        first = answer.kvs[-1].key + b"\0"
        revision = revision or answer.header.revision
        size = answer.ByteSize()
        page = max(1, page // 2) if size > MAX_ANSWER_BYTES else page


CHANGED_STATE = "rows of its state are changed, missing or outdated"


def check_empty(connection: EtcdConnection, keys: Keys) -> None:
    """Check that a journal without a head has no other keys. Raises DamagedEtcdJournalError, JournalError."""
    looks = [
        reading(get(keys.importing)),
        *(
            reading(api.RangeRequest(key=span.first, range_end=span.end, count_only=True))
            for span in (keys.states, keys.histories)
        ),
    ]
    importing, *counts = (
        one.response_range.count for one in connection.call(TXN, api.TxnRequest(success=looks)).responses
    )
    if importing:
        raise DamagedEtcdJournalError(keys.prefix, "an import into it was not completed: repeat it")
    if any(counts):
        raise DamagedEtcdJournalError(keys.prefix, "its head is missing")
