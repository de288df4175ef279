"""Commits beyond one etcd transaction are written whole or not at all, wherever their writer dies."""

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store.errors import UnstorableError
from blast_controller.store.etcd import ledger
from blast_controller.store.etcd.errors import DeposedError, StoreUnavailableError
from blast_controller.store.etcd.loading import pages
from blast_controller.store.etcd.requests import MAX_OPERATIONS, grouped, nested, put
from tests.support.controller.etcd_server import Mortal

pytestmark = pytest.mark.etcd


@pytest.fixture
def mortal(controllers):
    def make():
        connection = controllers.connection(kind=Mortal)
        return connection, controllers.store(leadership=controllers.leadership(connection))

    return make


@pytest.fixture
def small_transactions(monkeypatch):
    monkeypatch.setattr(ledger, "MAX_BYTES", 3_000)


def rows(number, size=10, since=0):
    return [Record("request", f"r{n}", {"is": "x" * size, "n": n}) for n in range(since, since + number)]


LARGE = [
    Record("request", "r0", None, note="gone"),
    Record("reservation", "1", None),
    Record("reservation", "2", {"n": 2}, frozenset({"port:1"}), "lit"),
    *rows(12, 400, since=1),
]


def begun(store):
    """Open a journal, and commit records that the large commit changes."""
    store.open()
    store.commit([*rows(2), Record("reservation", "1", {"n": 1}, frozenset({"port:1"}))], at=1.0)


def seen(store):
    return store.open().state, [(entry.sequence, entry.key, entry.body) for entry in store.journal(0, 100)][:-1]


def test_thousands_of_rows_fit_into_one_transaction(mortal):
    connection, store = mortal()
    store.open()
    before = connection.transactions
    store.commit(rows(MAX_OPERATIONS - 100), at=1.0)
    assert connection.transactions == before + 1
    store.close()
    assert len(store.open().of("request")) == MAX_OPERATIONS - 100


def test_commit_beyond_one_transaction_is_written_in_parts(mortal, controllers):
    connection, store = mortal()
    store.open()
    before = connection.transactions
    # Incompressible content, since compressed rows would be small.
    made = [Record("request", f"r{n}", {"is": [hash((n, i)) for i in range(2_000)]}) for n in range(60)]
    store.commit([*made, *rows(MAX_OPERATIONS, since=100)], at=1.0)
    assert connection.transactions > before + 3
    entries = store.journal(1, 10_000)
    assert [entry.sequence for entry in entries] == list(range(2, 62 + MAX_OPERATIONS))
    assert entries[7].body == made[7].body
    assert not list(pages(connection, controllers.keys.all_staged))
    store.close()
    loaded = store.open().of("request")
    assert len(loaded) == 60 + MAX_OPERATIONS and loaded["r59"] == made[59].body


def test_record_too_large_for_a_key_is_rejected(controllers):
    store = controllers.opened_store()
    huge = Record("request", "huge", {"is": [hash((n, "some")) for n in range(300_000)]})
    with pytest.raises(UnstorableError, match="under one key"):
        store.commit([*rows(1), huge], at=1.0)
    store.commit(rows(1), at=1.0)
    assert [entry.sequence for entry in store.journal(0, 10)] == [1, 2]


def test_request_of_a_megabyte_is_stored(controllers):
    store = controllers.opened_store()
    body = {"is": "".join(chr(0x4E00 + hash((n, "text")) % 20_000) for n in range(300_000))}
    store.commit([Record("request", "large", body)], at=1.0)
    assert store.journal(1, 1)[0].body == body


def undisturbed(controllers, *commits):
    """Return the content of a journal after `commits` without a fault."""
    controllers.keys = controllers.server.keys()
    store = controllers.store()
    begun(store)
    for commit in commits:
        store.commit(commit, at=2.0)
    store.close()
    return seen(controllers.store())


@pytest.mark.parametrize("receives_last_answer", [True, False], ids=["before a write", "before an answer"])
def test_large_commit_is_atomic_wherever_its_writer_dies(mortal, controllers, small_transactions, receives_last_answer):
    none, whole = undisturbed(controllers), undisturbed(controllers, LARGE)
    outcomes = []
    is_over = False
    while not is_over:
        controllers.keys = controllers.server.keys()
        connection, store = mortal()
        begun(store)
        connection.left, connection.receives_last_answer = len(outcomes), receives_last_answer
        try:
            store.commit(LARGE, at=2.0)
            is_acknowledged = True
        except StoreUnavailableError:
            is_acknowledged = False
        is_over = connection.left > 0
        store.close()
        found = seen(controllers.store())
        assert found in (none, whole)
        assert found == whole or not is_acknowledged
        assert not list(pages(controllers.connection(), controllers.keys.all_staged))
        outcomes.append(found == whole)
    # First none of it counts, then all.
    assert outcomes == sorted(outcomes) and {True, False} == set(outcomes) and len(outcomes) > 8


@pytest.fixture
def half_done(mortal, small_transactions):
    """Return a function that makes a store whose large commit is decided, but only partly carried out.

    `done` of the transactions that follow the decision were answered; the answer to one more was lost. The function
    returns None if there are fewer.
    """

    def make(done):
        connection, store = mortal()
        begun(store)
        before = connection.transactions
        connection.left = 1_000
        store.commit([*LARGE, *rows(1)], at=2.0)
        parts = (connection.transactions - before - 2) // 2
        connection.left, connection.receives_last_answer = parts + 1 + done + 1, False
        if done > parts:
            return None
        store.commit(LARGE, at=3.0)
        connection.left, connection.receives_last_answer = None, True
        return store

    return make


def test_partly_applied_commit_is_finished_once(half_done, controllers):
    done = 0
    while (store := half_done(done)) is not None:
        store.commit(rows(1, since=50), at=4.0)
        assert [entry.sequence for entry in store.journal(0, 100)] == list(range(1, 4 + 2 * len(LARGE) + 3))
        store.close()
        assert list(store.open().of("request"))[-1] == "r50"
        store.close()
        controllers.keys = controllers.server.keys()
        done += 1
    assert done > 2


def test_deposed_leader_reports_no_damage_while_it_finishes_a_commit(half_done, controllers):
    """The next leader finishes the commit, too, and removes its staged parts."""
    done = 0
    while (store := half_done(done)) is not None:
        controllers.depose()
        following = controllers.store()
        following.open()
        with pytest.raises(DeposedError):
            store.commit(rows(1, since=50), at=4.0)
        following.commit(rows(1, since=60), at=5.0)
        assert following.journal(0, 100)[-1].key == "r60"
        following.close()
        controllers.keys = controllers.server.keys()
        done += 1
    assert done > 2


def test_operations_are_grouped_by_size_and_number():
    many = [put(b"%d" % n, b"x" * 90) for n in range(100)]
    groups = list(grouped(many, 1_000))
    assert [operation for group in groups for operation in group] == many
    assert all(sum(operation.ByteSize() for operation in group) <= 1_000 for group in groups)
    (alone, rest) = grouped([put(b"a", b"x" * 5_000), put(b"b", b"")], 1_000)
    assert (len(alone), len(rest)) == (1, 1)
    assert [len(group) for group in grouped([put(b"", b"")] * (MAX_OPERATIONS + 1), 1 << 30)] == [MAX_OPERATIONS, 1]
    assert list(grouped([], 1_000)) == []


def test_long_operation_lists_are_nested():
    few, many = ([put(b"%d" % n, b"") for n in range(number)] for number in (60, 61))
    assert nested(few) == few
    assert [len(one.request_txn.success) for one in nested(many)] == [60, 1]
