"""The journal's file: locking, rejected files, permissions and schemas."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store.errors import (
    DamagedJournalError,
    JournalLockedError,
    JournalSchemaError,
    NotAccessibleError,
)
from blast_controller.store.files import wal_of
from blast_controller.store.reader import JournalReader
from blast_controller.store.schema import SCHEMA
from blast_controller.store.sqlite import SqliteStore
from blast_controller.store.sqlite_file import connect

ROWS = 300


def row(number):
    return Record("request", f"r{number}", {"value": number, "filling": "x" * 200}, note="pending")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def filled(path):
    """Return a closed journal with rows."""
    store = SqliteStore(path)
    store.open()
    store.commit([row(number) for number in range(ROWS)], at=0.0)
    store.close()
    return path


def test_commit_runs_few_statements_for_any_number_of_rows(path):
    """Python releases its lock for each statement, and waits for it while other threads are busy."""
    store, statements = SqliteStore(path), []
    store.open()
    store.commit([row(number) for number in range(100)], at=0.0)
    store._current().writer.set_trace_callback(statements.append)
    store.commit([row(number) for number in range(50, 150)] + [Record("request", "r7", None)], at=0.0)
    store._current().writer.set_trace_callback(None)
    assert len(statements) <= 7, statements
    statements.clear()
    store._current().writer.set_trace_callback(statements.append)
    elements = [f"e{number}" for number in range(60)]
    reservations = [Record("reservation", str(n), {}, frozenset(elements[6 * n : 6 * n + 6])) for n in range(10)]
    store.commit(reservations, at=0.0)
    store.commit([Record("reservation", str(number), None) for number in range(10)], at=0.0)
    assert len(statements) <= 14, statements
    store.close()


def test_backup_of_an_open_journal_is_a_journal_with_every_commit(path, tmp_path):
    """Back up as `sqlite3 FILE .backup` does, which the operator's guide recommends."""
    copy = tmp_path / "backup.db"
    store = SqliteStore(path)
    with closing(store):
        store.open()
        for number in range(50):
            store.commit([row(number)], at=0.0)
        with closing(connect(path, "ro")) as connection, closing(sqlite3.connect(copy)) as backup:
            connection.backup(backup)
        store.commit([row(50)], at=0.0)
    with closing(SqliteStore(copy)) as restored:
        loaded = restored.open()
        assert loaded.epoch == 2, "the run after the one that was copied"
        assert list(loaded.of("request")) == [f"r{number}" for number in range(50)]


def refused(path, fault):
    """Check that the file is refused, and return the message.

    The file is unchanged afterwards, and its lock is free.
    """
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(fault) as caught:
        SqliteStore(path).open()
    assert (path.read_bytes() if path.is_file() else None) == before
    with pytest.raises(fault):
        SqliteStore(path).open()
    assert str(path) in str(caught.value)
    return str(caught.value)


# ----------------------------------------------------------------------------------------------- one controller only

HOLD = """
import sys, time
from pathlib import Path
from blast_controller.store.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
store.open()
if sys.argv[2] == "fork":
    import os
    # The child inherits every descriptor and outlives its parent.
    if (child := os.fork()) == 0:
        sys.stdout.close()
        time.sleep(60)
    print(child, flush=True)
else:
    print("open", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(path):
    """Yield a function that starts processes that lock the journal."""
    processes = []

    def start(how="alone"):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path), how], stdout=subprocess.PIPE, text=True, close_fds=True
        )
        processes.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_second_controller_is_rejected_with_the_pid_of_the_first(path, holder):
    process, _ = holder()
    store = SqliteStore(path)
    with pytest.raises(JournalLockedError, match=f"in use by process {process.pid}: only one controller") as caught:
        store.open()
    assert caught.value.pid == process.pid
    process.kill()
    process.wait()
    assert store.open().epoch == 2
    store.close()


def test_child_that_outlives_the_controller_does_not_lock_the_journal(path, holder):
    process, child = holder("fork")
    try:
        process.kill()
        process.wait()
        store = SqliteStore(path)
        assert store.open().epoch == 2
        store.close()
    finally:
        os.kill(int(child), 9)


def test_symlink_to_an_open_journal_is_locked(path, tmp_path):
    store = SqliteStore(path)
    store.open()
    (tmp_path / "alias.db").symlink_to(path)
    with pytest.raises(JournalLockedError):
        SqliteStore(tmp_path / "alias.db").open()
    store.close()


def test_commit_reports_a_writing_sqlite_shell_after_waiting(path, monkeypatch):
    monkeypatch.setattr("blast_controller.store.sqlite_file.BUSY_SECONDS", 0.05)
    store = SqliteStore(path)
    store.open()
    with closing(connect(path, "rw")) as shell:
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalLockedError, match="another process"):
            store.commit([row(1)], at=0.0)
        shell.execute("ROLLBACK")
    store.commit([row(1)], at=0.0)
    store.close()


# ---------------------------------------------------------------------------------------------- never a fresh start


@pytest.mark.parametrize("content", [b"", b"\0" * 8192, b"once upon a time " * 400], ids=["empty", "zeros", "prose"])
def test_file_that_is_no_journal_is_rejected(path, content):
    path.write_bytes(content)
    assert "restore it from a backup" in refused(path, DamagedJournalError)


def test_database_of_another_program_is_rejected(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE state (x)")
    assert "does not carry the mark" in refused(path, DamagedJournalError)


def test_truncated_file_is_rejected(filled):
    whole = filled.stat().st_size
    for tenths in (9, 5, 1, 0):
        os.truncate(filled, whole * tenths // 10)
        assert "restore it from a backup" in refused(filled, DamagedJournalError)


def test_torn_page_is_rejected(filled):
    whole = filled.read_bytes()
    halves = [begin for begin in range(4096, len(whole), 2048) if any(whole[begin : begin + 2048])]
    assert len(halves) > 20
    for begin in halves:
        filled.write_bytes(whole[:begin] + bytes(2048) + whole[begin + 2048 :])
        refused(filled, DamagedJournalError)


def test_missing_file_with_an_existing_log_is_rejected(path, tmp_path):
    store = SqliteStore(path)
    store.open()
    store.commit([row(1)], at=0.0)
    image = tmp_path / "image"
    image.mkdir()
    shutil.copy(wal_of(path), image)
    store.close()
    with pytest.raises(DamagedJournalError, match="its -wal file exists"):
        SqliteStore(image / path.name).open()
    assert not (image / path.name).exists()


def test_lost_log_repeats_no_epoch_and_keeps_the_state(path, tmp_path):
    store = SqliteStore(path)
    store.open()
    store.commit([row(1)], at=0.0)
    store.close()
    assert store.open().epoch == 2
    store.commit([row(2)], at=0.0)
    shutil.copy(path, tmp_path / "without-log.db")
    store.close()
    store = SqliteStore(tmp_path / "without-log.db")
    loaded = store.open()
    store.close()
    assert (loaded.epoch, loaded.is_new, list(loaded.of("request"))) == (3, False, ["r1"])


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DROP TABLE held", "no such table: held"),
        ("DELETE FROM meta", "its epoch is None, but an entry has epoch 1"),
        ("UPDATE state SET body = '{' WHERE key = 'r1'", "the request 'r1' is changed"),
    ],
)
def test_edited_file_is_rejected(filled, statement, reason):
    with closing(connect(filled, "rw")) as connection:
        connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    store = SqliteStore(filled)
    with pytest.raises(DamagedJournalError, match=reason):
        store.open()
        store.commit([Record("reservation", "1", {}, frozenset({"a"}))], at=0.0)
    store.close()


def test_incomplete_first_file_is_replaced(path):
    for name in ("journal.db.new", "journal.db.new-journal", "journal.db.new-wal"):
        path.with_name(name).write_bytes(b"half")
    store = SqliteStore(path)
    assert store.open().is_new
    store.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["journal.db", "journal.db.latest", "journal.db.lock"]
    assert path.stat().st_mode & 0o777 == 0o600


# ------------------------------------------------------------------------------------------------------- permissions

UNPRIVILEGED = """
import os, sys
from pathlib import Path
from blast_controller.core.model.records import Record
from blast_controller.store.errors import JournalError
from blast_controller.store.sqlite import SqliteStore
folder = Path(sys.argv[1])
for right in sys.argv[2:]:
    name, mode = right.split(":")
    before = (folder / name).stat().st_mode
    (folder / name).chmod(int(mode, 8))
    if (child := os.fork()) == 0:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        try:
            store = SqliteStore(folder / "journal.db")
            store.open()
            store.commit([Record("request", right, {})], at=0.0)
            store.close()
            print("fine", flush=True)
        except JournalError as fault:
            print(type(fault).__name__, str(fault).replace("\\n", " "), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    (folder / name).chmod(before)
"""


def test_error_names_the_missing_permissions(filled):
    # Not in the run's own folder, which only its user may enter.
    with tempfile.TemporaryDirectory(prefix="blast-store-", dir="/tmp") as folder:
        shutil.copy(filled, folder)
        Path(folder, "journal.db.lock").touch()
        for name, mode in ((".", 0o777), ("journal.db", 0o666), ("journal.db.lock", 0o666)):
            Path(folder, name).chmod(mode)
        needed = [".:000", ".:555", ".:666", "journal.db:000", "journal.db:444", "journal.db.lock:000"]
        result = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, folder, ".:777", *needed], capture_output=True, text=True, check=True
        )
    first, *others = result.stdout.splitlines()
    assert first == "fine" and len(others) == len(needed)
    for answer in others:
        assert answer.startswith("NotAccessibleError ")
        assert "the controller's user must have read and write permission" in answer


def test_open_does_not_create_a_missing_folder(tmp_path):
    refused(tmp_path / "nowhere" / "journal.db", NotAccessibleError)
    assert not (tmp_path / "nowhere").exists()


def test_folder_is_rejected(path):
    path.mkdir()
    assert "not a file" in refused(path, NotAccessibleError)


# --------------------------------------------------------------------------------------------------------- schema


@pytest.mark.parametrize("schema", [SCHEMA - 1, SCHEMA + 1])
def test_journal_of_another_schema_is_rejected(filled, schema):
    with closing(connect(filled, "rw")) as connection:
        connection.execute(f"PRAGMA user_version = {schema}")
    assert f"schema {schema} and this release reads schema {SCHEMA}" in refused(filled, JournalSchemaError)
    with pytest.raises(JournalSchemaError):
        JournalReader(filled)
