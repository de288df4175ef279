"""The contract of every store; `test_store_model.py` compares the stores with a model."""

import threading

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store.errors import DoubleHeldError, JournalLockedError, JournalNotOpenError, UnstorableError
from blast_controller.store.etcd.store import StorePolicy
from blast_controller.store.memory import MemoryStore
from blast_controller.store.retention import SECONDS_PER_DAY, Retention
from blast_controller.store.sqlite import SqliteStore


def request(key, body=None, note=""):
    return Record("request", key, body if body is None else {"value": body}, note=note)


def reservation(key, *elements, note="lit"):
    return Record("reservation", key, {"number": key}, frozenset(elements), note)


def released(key):
    return Record("reservation", key, None, note="released")


def make_memory(request, retention: Retention):
    return MemoryStore(retention)


def make_sqlite(request, retention: Retention):
    return SqliteStore(request.getfixturevalue("tmp_path") / "journal.db", retention)


def make_etcd(request, retention: Retention):
    return request.getfixturevalue("controllers").store(StorePolicy(wait=0.0, retention=retention))


@pytest.fixture(
    params=[make_memory, make_sqlite, pytest.param(make_etcd, marks=pytest.mark.etcd)], ids=["memory", "sqlite", "etcd"]
)
def make(request):
    stores = []

    def build(retention=None):
        stores.append(request.param(request, retention or Retention()))
        return stores[-1]

    yield build
    for store in stores:
        store.close()


@pytest.fixture
def store(make):
    store = make()
    store.open()
    return store


def reopened(store):
    store.close()
    return store.open()


def test_committed_rows_are_present_after_reopening(store):
    body = {"text": "é\ud800\0", "list": [1, 2.5, None, True], "deep": {"a": {}}, "big": 1 << 80}
    store.commit([Record("request", "default/a b\0c", body, note="granted")], at=5.0)
    assert reopened(store).of("request") == {"default/a b\0c": body}


def test_row_removed_and_rewritten_in_one_commit_is_kept(store):
    store.commit([request("a", 1), request("b", 2)], at=1)
    store.commit([request("a"), request("a", 3)], at=2)
    assert reopened(store).of("request") == {"b": {"value": 2}, "a": {"value": 3}}


# -------------------------------------------------------------------------------------------------- holdings (I1)


def test_commit_with_a_second_holder_is_rejected_whole(store):
    store.commit([reservation("1", "port:r1/1", "splitter:s1")], at=0.0)
    before = store.journal(0, 10)
    with pytest.raises(DoubleHeldError, match="reservation 2 needs splitter:s1, which reservation 1 holds") as caught:
        store.commit([request("a", 1), reservation("2", "port:r2/1", "splitter:s1")], at=0.0)
    assert (caught.value.element, caught.value.holder, caught.value.requested_by) == ("splitter:s1", "1", "2")
    assert store.journal(0, 10) == before
    # The rejected reservation holds none of its elements.
    store.commit([reservation("3", "port:r2/1")], at=0.0)
    assert list(reopened(store).of("reservation")) == ["1", "3"]
    assert reopened(store).of("request") == {}


@pytest.mark.parametrize(
    "record",
    [
        Record("request", "a", {"x": object()}),
        Record("request", "a", {"x": float("nan")}),
        Record("request", "a", {"x": {1, 2}}),
        Record("request", "\ud800", {}),
        Record("request", "a", {}, frozenset({"port:r1/1"})),
        Record("reservation", "a", None, frozenset({"port:r1/1"})),
        Record("reservation", "a", {}, frozenset({"\ud800"})),
    ],
    ids=["object", "not a number", "set", "key", "held by a request", "held by no row", "element"],
)
def test_unstorable_record_is_rejected_and_writes_nothing(store, record):
    with pytest.raises(UnstorableError):
        store.commit([request("before", 1), record], at=0.0)
    assert reopened(store).of("request") == {}


# ------------------------------------------------------------------------------------------------------- history


def test_note_that_is_not_utf8_is_escaped(store):
    store.commit([Record("request", "a", {}, note="\udfff")], at=0.0)
    assert store.journal(0, 10)[-1].note == r"\udfff"


def test_history_is_read_page_by_page(store):
    store.commit([request("a", 1, "pending"), reservation("1", "x", note="configuring")], at=10.5)
    store.commit([released("1")], at=11.5)
    entries = store.journal(0, 100)
    assert [entry.sequence for entry in entries] == [1, 2, 3, 4]
    assert [(e.at, e.epoch, e.kind, e.key, e.note, e.body) for e in entries[1:]] == [
        (10.5, 1, "request", "a", "pending", {"value": 1}),
        (10.5, 1, "reservation", "1", "configuring", {"number": "1"}),
        (11.5, 1, "reservation", "1", "released", None),
    ]
    assert store.journal(1, 2) == entries[1:3]
    assert store.journal(4, 10) == store.journal(0, 0) == store.journal(0, -1) == store.journal(1 << 70, 10) == []
    assert store.journal(-5, 1) == entries[:1]


def test_history_is_trimmed_by_number_and_state_is_not(make):
    store = make(Retention(entries=3))
    store.open()
    for number in range(20):
        store.commit([request(f"r{number}", number)], at=0.0)
    while store.compact(at=0.0):
        pass
    assert [entry.sequence for entry in store.journal(0, 100)] == [19, 20, 21]
    assert store.journal(19, 1)[0].sequence == 20
    loaded = reopened(store)
    assert list(loaded.of("request")) == [f"r{number}" for number in range(20)]
    assert store.journal(21, 5)[0].sequence == 22


def test_history_is_trimmed_by_age_but_for_the_latest(make):
    store = make(Retention(days=2))
    store.open()
    now = 2e9
    store.commit([request("old", 1)], at=now - 3 * SECONDS_PER_DAY)
    store.commit([request("young", 1)], at=now - 1 * SECONDS_PER_DAY)
    assert not store.compact(at=now)
    assert [entry.key for entry in store.journal(0, 10)] == ["young"]
    store.compact(at=now + 99 * SECONDS_PER_DAY)
    assert [entry.sequence for entry in store.journal(0, 10)] == [3]


def test_history_is_trimmed_by_size_including_earlier_runs(make):
    store = make(Retention(max_bytes=10_000))
    store.open()
    for number in range(100):
        store.commit([request(f"r{number}", "x" * 1000)], at=0.0)
    reopened(store)
    while store.compact(at=0.0):
        pass
    kept = store.journal(0, 1000)
    assert [entry.sequence for entry in kept] == list(range(94, 103)), "eight of 1100 bytes, and that of the opening"
    store.commit([request("large", "x" * 20_000)], at=0.0)
    while store.compact(at=0.0):
        pass
    assert [entry.key for entry in store.journal(0, 1000)] == ["large"], "the latest stays whatever its size"
    assert len(reopened(store).of("request")) == 101


# ------------------------------------------------------------------------------------------------ open and closed


def test_open_store_cannot_be_opened_again(store):
    with pytest.raises(JournalLockedError, match="in use by process"):
        store.open()
    store.commit([request("still", 1)], at=0.0)


def test_closed_store_rejects_operations(make):
    store = make()
    store.close()
    store.open()
    store.close()
    store.close()
    for use in (
        lambda: store.commit([request("a", 1)], at=0.0),
        lambda: store.journal(0, 1),
        lambda: store.compact(0.0),
    ):
        with pytest.raises(JournalNotOpenError):
            use()
    assert reopened(store).of("request") == {}


def test_concurrent_commits_and_reads_succeed(store):
    failures = []

    def guarded(work):
        try:
            work()
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  reported by the test's own thread
            failures.append(error)

    def write(name):
        for number in range(15):
            store.commit([request(name, number), reservation(name, name)], at=0.0)

    def read():
        after = 0
        while after < 1 + 4 * 15 * 2 and not failures:
            for entry in store.journal(after, 7):
                assert entry.sequence == after + 1
                after = entry.sequence
            store.compact(0.0)

    threads = [threading.Thread(target=guarded, args=(lambda n=n: write(f"w{n}"),)) for n in range(4)]
    threads += [threading.Thread(target=guarded, args=(read,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not failures
    assert sorted(reopened(store).of("request").items()) == [(f"w{n}", {"value": 14}) for n in range(4)]
