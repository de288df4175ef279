"""Any commits, crashes and compactions: every store is a dict that keeps the order of its keys."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from blast_controller.core.model.records import Record
from blast_controller.store.errors import DoubleHeldError
from blast_controller.store.etcd import ledger, values
from blast_controller.store.etcd.store import StorePolicy
from blast_controller.store.files import wal_of
from blast_controller.store.memory import MemoryStore
from blast_controller.store.retention import Retention
from blast_controller.store.sqlite import SqliteStore
from tests.support.controller.etcd_server import Controllers

KEPT = 8

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
bodies = st.none() | st.dictionaries(st.text(max_size=3), json_values, max_size=3)
keys = st.sampled_from(["a", "c/d", "é\0", ""])
elements = st.frozensets(st.sampled_from(["port:1", "port:2", "splitter:1"]), max_size=2)
notes = st.sampled_from(["", "lit"])
things = st.builds(Record, st.sampled_from(["request", "element", "meta"]), keys, bodies, note=notes)
reservations = st.builds(
    lambda key, body, held, note: Record("reservation", key, body, held if body is not None else frozenset(), note),
    keys,
    bodies,
    elements,
    notes,
)
commits = st.lists(things | reservations, max_size=6)


class Model:
    """The expected content of a store."""

    def __init__(self):
        self.state, self.held, self.entries, self.epoch = {}, {}, [], 0

    def opened(self):
        self.epoch += 1
        self.entries.append(("meta", "epoch", "opened", {"epoch": self.epoch}))

    def commit(self, records):
        """Apply a commit if it is allowed, and return whether it is."""
        state, held, entries = dict(self.state), dict(self.held), list(self.entries)
        for record in records:
            if record.kind == "reservation":
                held = {element: key for element, key in held.items() if key != record.key}
                if held.keys() & record.elements:
                    return False
                held.update(dict.fromkeys(record.elements, record.key))
            if record.body is None:
                state.pop((record.kind, record.key), None)
            else:
                state[record.kind, record.key] = record.body
            entries.append((record.kind, record.key, record.note, record.body))
        self.state, self.held, self.entries = state, held, entries
        return True


class StoreMachine(RuleBasedStateMachine):
    """A machine whose subclasses make and crash a store."""

    def make(self):
        raise NotImplementedError

    def crashed(self):
        raise NotImplementedError

    @initialize()
    def first_start(self):
        self.model = Model()
        self.trimmed = 0
        self.store = self.make()
        self.check_opening()
        assert self.model.epoch == 1

    def check_opening(self):
        loaded = self.store.open()
        self.model.opened()
        assert loaded.epoch == self.model.epoch
        assert loaded.is_new == (loaded.epoch == 1)
        for kind in ("request", "reservation", "element", "meta"):
            expected = [(key, body) for (of, key), body in self.model.state.items() if of == kind]
            assert list(loaded.of(kind).items()) == expected

    @rule(records=commits)
    def commit(self, records):
        if self.model.commit(records):
            self.store.commit(records, at=1.0)
        else:
            with pytest.raises(DoubleHeldError):
                self.store.commit(records, at=1.0)

    @rule()
    def restart(self):
        self.store.close()
        self.check_opening()

    @rule()
    def crash(self):
        self.store = self.crashed()
        self.check_opening()

    @precondition(lambda self: len(self.model.entries) - self.trimmed > KEPT)
    @rule()
    def compact(self):
        while self.store.compact(at=1.0):
            pass
        self.trimmed = len(self.model.entries) - KEPT

    @invariant()
    def history_is_that_of_the_model(self):
        if not hasattr(self, "store"):
            return
        found = self.store.journal(0, 10_000)
        assert [e.sequence for e in found] == list(range(self.trimmed + 1, len(self.model.entries) + 1))
        assert [(e.kind, e.key, e.note, e.body) for e in found] == self.model.entries[self.trimmed :]

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()


class MemoryMachine(StoreMachine):
    def make(self):
        return MemoryStore(Retention(entries=KEPT))

    def crashed(self):
        self.store.close()
        return self.store


class SqliteMachine(StoreMachine):
    def make(self):
        self.folder = Path(tempfile.mkdtemp(prefix="blast-store-"))
        return SqliteStore(self.folder / "0.db", Retention(entries=KEPT))

    def crashed(self):
        """Return a store on a copy of the current files, which the process never closed."""
        old = self.store.path
        new = old.with_name(f"{int(old.stem) + 1}.db")
        shutil.copy(old, new)
        if wal_of(old).exists():
            shutil.copy(wal_of(old), wal_of(new))
        self.store.close()
        return SqliteStore(new, Retention(entries=KEPT))

    def teardown(self):
        super().teardown()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


class EtcdMachine(StoreMachine):
    server = None

    def make(self):
        self.controllers = Controllers(self.server)
        return self.another()

    def another(self):
        return self.controllers.store(StorePolicy(wait=0.0, retention=Retention(entries=KEPT)))

    def crashed(self):
        """Return the store of another controller, after the lease of the first has ended."""
        self.controllers.depose()
        self.store.close()
        return self.another()

    def teardown(self):
        super().teardown()
        if hasattr(self, "controllers"):
            self.controllers.close()


@pytest.fixture
def server(etcd, monkeypatch):
    monkeypatch.setattr(EtcdMachine, "server", etcd)


@pytest.fixture
def in_parts(monkeypatch):
    """No commit fits into one transaction."""
    monkeypatch.setattr(ledger, "MAX_BYTES", 400)
    monkeypatch.setattr(values, "LARGEST_BATCH", 150)


TestMemoryStore = MemoryMachine.TestCase
TestMemoryStore.settings = settings(max_examples=60, stateful_step_count=25)
TestSqliteStore = SqliteMachine.TestCase
TestSqliteStore.settings = settings(max_examples=30, stateful_step_count=15)


@pytest.mark.etcd
@pytest.mark.usefixtures("server")
class TestEtcdStore(EtcdMachine.TestCase):
    settings = settings(max_examples=20, stateful_step_count=12)


@pytest.mark.usefixtures("in_parts")
class TestEtcdStoreInParts(TestEtcdStore):
    pass
