"""Whatever is committed, dropped and opened again, a journal in etcd is what one in memory is."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blast_controller.core.model.records import Record
from blast_controller.store.errors import DoubleHeld
from blast_controller.store.etcd import ledger, values
from blast_controller.store.etcd.store import Policy
from blast_controller.store.memory import MemoryStore
from blast_controller.store.retention import Retention

TEXTS = st.sampled_from(["a", "b", "c/d", "é\0", ""])
BODIES = st.none() | st.dictionaries(st.sampled_from("xy"), st.integers() | st.text(max_size=30) | st.floats(0, 1))
ELEMENTS = st.frozensets(st.sampled_from(["port:1", "port:2", "splitter:1"]), max_size=2)


@st.composite
def records(draw):
    kind = draw(st.sampled_from(["request", "reservation"]))
    body = draw(BODIES)
    elements = draw(ELEMENTS) if kind == "reservation" and body is not None else frozenset()
    return Record(kind, draw(TEXTS), body, elements, draw(TEXTS))


STEPS = st.lists(
    st.lists(records(), min_size=1, max_size=12) | st.sampled_from(["compact", "reopen"]), min_size=1, max_size=12
)


@pytest.fixture(params=[1 << 20, 400], ids=["one transaction", "in parts"])
def most_bytes(request, monkeypatch):
    monkeypatch.setattr(ledger, "MOST_BYTES", request.param)
    monkeypatch.setattr(values, "LARGEST_BATCH", 150)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, entries=st.integers(1, 30))
def test_it_is_what_a_journal_in_memory_is(controllers, most_bytes, steps, entries):
    controllers.keys = controllers.server.keys()
    retention = Retention(entries=entries)
    stores = [MemoryStore(retention), controllers.store(Policy(wait=0.0, retention=retention))]
    try:
        _same(stores, _opened)
        for number, step in enumerate(steps):
            match step:
                case "compact":
                    _same(stores, _all_compacted)
                case "reopen":
                    _same(stores, _reopened)
                case commit:
                    _same(stores, lambda store, commit=commit, at=float(number): _committed(store, commit, at))
            _same(stores, _history)
        _same(stores, _reopened)
    finally:
        for store in stores:
            store.close()


def _same(stores, act):
    in_memory, in_etcd = (act(store) for store in stores)
    assert in_etcd == in_memory


def _opened(store):
    loaded = store.open()
    return loaded.epoch, loaded.is_new, [(kind, list(rows.items())) for kind, rows in loaded.state.items() if rows]


def _reopened(store):
    store.close()
    return _opened(store)


def _committed(store, commit, at):
    try:
        store.commit(commit, at)
    except DoubleHeld as fault:
        return str(fault)
    return None


def _all_compacted(store):
    # By number only: how old the entry of an opening is, each store says for itself.
    while store.compact(0.0):
        pass


def _history(store):
    # The entry of an opening has the time of it, which is not the same for two.
    return [(e.sequence, e.epoch, e.kind, e.key, e.note, e.body) for e in store.journal(0, 1_000)]
