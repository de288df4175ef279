"""Compaction of history and log during commits, and the duration of commits."""

import time
from contextlib import closing

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store import sqlite as sqlite_store
from blast_controller.store.compaction import Compactor
from blast_controller.store.errors import JournalError
from blast_controller.store.files import wal_of
from blast_controller.store.retention import Retention
from blast_controller.store.sqlite import SqliteStore
from blast_controller.store.sqlite_file import connect
from tests.support.waiting import eventually


def row(number):
    return Record("request", f"r{number}", {"value": number, "filling": "x" * 200}, note="pending")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


def test_log_stays_short_under_continuous_commits(path, monkeypatch):
    monkeypatch.setattr(sqlite_store, "LONGEST_LOG", 50)
    store = SqliteStore(path, Retention(entries=100))
    store.open()
    longest = 0
    for number in range(400):
        store.commit([row(number % 50)], at=0.0)
        if number % 10 == 0:
            store.compact(at=0.0)
        longest = max(longest, wal_of(path).stat().st_size)
    assert longest < 200 * 4096
    assert path.stat().st_size < 100 * 4096
    assert len(store.journal(0, 1000)) <= 100 + 10
    store.close()
    assert not wal_of(path).exists()


def test_long_read_does_not_block_commits(path, monkeypatch):
    monkeypatch.setattr(sqlite_store, "LONGEST_LOG", 1)
    store = SqliteStore(path)
    store.open()
    with closing(connect(path, "ro")) as shell:
        shell.execute("BEGIN")
        shell.execute("SELECT count(*) FROM journal").fetchone()
        for number in range(10):
            store.commit([row(number)], at=0.0)
            store.compact(at=0.0)
        assert shell.execute("SELECT count(*) FROM journal").fetchone() == (1,)
    store.close()


def test_compactor_runs_during_commits_and_stops(path):
    failures = []
    store = SqliteStore(path, Retention(entries=10))
    store.open()
    compactor = Compactor(store, failures.append, interval=0.01)
    compactor.start()
    for number in range(300):
        store.commit([row(number)], at=time.time())
    eventually(lambda: len(store.journal(0, 1000)) <= 10, "a journal that is compacted")
    compactor.stop()
    store.close()
    assert not failures
    assert len(store.open().of("request")) == 300
    store.close()


class Uncompactable:
    def __init__(self, error):
        self.error, self.calls = error, 0

    def compact(self, at):
        self.calls += 1
        raise self.error


def test_compactor_survives_a_store_error(caplog):
    store, failures = Uncompactable(JournalError("no room today")), []
    compactor = Compactor(store, failures.append, interval=0.005)
    compactor.start()
    eventually(lambda: store.calls > 2)
    compactor.stop()
    assert not failures
    assert "no room today" in caplog.text


def test_compactor_reports_an_unexpected_error():
    store, failures = Uncompactable(ZeroDivisionError()), []
    compactor = Compactor(store, failures.append, interval=0.005)
    compactor.start()
    eventually(lambda: failures)
    compactor.stop()
    assert failures == [store.error]
    assert store.calls == 1


def test_store_reports_the_seconds_of_each_commit(path):
    seconds = []
    store = SqliteStore(path, on_commit=seconds.append)
    store.open()
    started = time.perf_counter()
    for number in range(5):
        store.commit([row(number)], at=0.0)
        assert store.last_commit_seconds == seconds[-1]
    took = time.perf_counter() - started
    assert len(seconds) == 5
    assert min(seconds) > 0
    assert sum(seconds) < took
    store.close()
