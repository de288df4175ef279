"""The journal's file: who may have it, what is refused, how it grows older."""

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


def test_a_commit_is_a_few_statements_however_many_rows(path):
    """For each one Python gives its lock away, and waits for it as long as other threads are busy."""
    store, said = SqliteStore(path), []
    store.open()
    store.commit([row(number) for number in range(100)], at=0.0)
    store._current().writer.set_trace_callback(said.append)
    store.commit([row(number) for number in range(50, 150)] + [Record("request", "r7", None)], at=0.0)
    store._current().writer.set_trace_callback(None)
    assert len(said) <= 7, said
    said.clear()
    store._current().writer.set_trace_callback(said.append)
    elements = [f"e{number}" for number in range(60)]
    holding = [Record("reservation", str(n), {}, frozenset(elements[6 * n : 6 * n + 6])) for n in range(10)]
    store.commit(holding, at=0.0)
    store.commit([Record("reservation", str(number), None) for number in range(10)], at=0.0)
    assert len(said) <= 14, said
    store.close()


def test_backup_of_an_open_journal_is_a_journal_with_every_commit(path, tmp_path):
    """As `sqlite3 FILE .backup` makes it, which the operator's guide gives."""
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


def test_a_second_controller_is_refused_by_the_first_ones_pid(path, holder):
    process, _ = holder()
    store = SqliteStore(path)
    with pytest.raises(JournalLockedError, match=f"in use by process {process.pid}: only one controller") as caught:
        store.open()
    assert caught.value.pid == process.pid
    process.kill()
    process.wait()
    assert store.open().epoch == 2
    store.close()


def test_a_child_that_outlives_the_controller_keeps_nobody_out(path, holder):
    process, child = holder("fork")
    try:
        process.kill()
        process.wait()
        store = SqliteStore(path)
        assert store.open().epoch == 2
        store.close()
    finally:
        os.kill(int(child), 9)


def test_another_name_of_the_same_file_is_the_same_journal(path, tmp_path):
    store = SqliteStore(path)
    store.open()
    (tmp_path / "alias.db").symlink_to(path)
    with pytest.raises(JournalLockedError):
        SqliteStore(tmp_path / "alias.db").open()
    store.close()


def test_an_sqlite_shell_in_the_middle_of_a_write_is_waited_for_and_then_named(path, monkeypatch):
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
def test_what_is_no_journal_is_refused(path, content):
    path.write_bytes(content)
    assert "restore it from a backup" in refused(path, DamagedJournalError)


def test_another_programs_database_is_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE state (x)")
    assert "does not carry the mark" in refused(path, DamagedJournalError)


def test_a_truncated_file_is_refused(filled):
    whole = filled.stat().st_size
    for tenths in (9, 5, 1, 0):
        os.truncate(filled, whole * tenths // 10)
        assert "restore it from a backup" in refused(filled, DamagedJournalError)


def test_a_torn_page_is_refused(filled):
    whole = filled.read_bytes()
    halves = [begin for begin in range(4096, len(whole), 2048) if any(whole[begin : begin + 2048])]
    assert len(halves) > 20
    for begin in halves:
        filled.write_bytes(whole[:begin] + bytes(2048) + whole[begin + 2048 :])
        refused(filled, DamagedJournalError)


def test_a_lost_file_with_its_log_still_there_is_refused(path, tmp_path):
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


def test_a_lost_log_gives_no_epoch_twice_and_no_fresh_start(path, tmp_path):
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
def test_a_file_that_somebody_edited_is_refused(filled, statement, reason):
    with closing(connect(filled, "rw")) as connection:
        connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    store = SqliteStore(filled)
    with pytest.raises(DamagedJournalError, match=reason):
        store.open()
        store.commit([Record("reservation", "1", {}, frozenset({"a"}))], at=0.0)
    store.close()


def test_a_half_made_first_file_is_made_again(path):
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


def test_without_the_rights_it_says_which_it_needs(filled):
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


def test_a_missing_folder_is_not_made(tmp_path):
    refused(tmp_path / "nowhere" / "journal.db", NotAccessibleError)
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_is_no_journal(path):
    path.mkdir()
    assert "not a file" in refused(path, NotAccessibleError)


# --------------------------------------------------------------------------------------------------------- schema


@pytest.mark.parametrize("schema", [SCHEMA - 1, SCHEMA + 1])
def test_journal_of_another_schema_is_refused(filled, schema):
    with closing(connect(filled, "rw")) as connection:
        connection.execute(f"PRAGMA user_version = {schema}")
    assert f"schema {schema} and this release reads schema {SCHEMA}" in refused(filled, JournalSchemaError)
    with pytest.raises(JournalSchemaError):
        JournalReader(filled)
