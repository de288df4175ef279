"""A journal whose bytes are changed: each change is noticed, or nothing of what was written differs."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from blast_client.cli.command import main
from blast_controller.core.model.records import Record
from blast_controller.store.contents import NotAnExportError, from_lines, to_lines
from blast_controller.store.errors import DamagedJournalError, JournalError
from blast_controller.store.etcd.copying import contents_of_etcd
from blast_controller.store.etcd.keys import KeySpan
from blast_controller.store.etcd.loading import pages
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import delete_all, put
from blast_controller.store.etcd.store import StorePolicy
from blast_controller.store.files import wal_of
from blast_controller.store.sqlite import SqliteStore
from blast_controller.store.sqlite_copy import contents_of_file, copy_into_file
from blast_controller.store.witness import witness_file

COPIES = 250
"""Damaged copies of each file; `make soak` does not have more kinds of them, and a thousand took none else."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a journal with rows in its file and, as after a crash, in its write-ahead log."""
    folder = tmp_path_factory.mktemp("written")
    store = SqliteStore(folder / "a.db")
    store.open()
    store.commit([request(number) for number in range(40)], at=1.0)
    store.commit([Record("reservation", "1", {"state": "lit"}, frozenset({"port:a", "port:b"}))], at=2.0)
    store.close()
    store.open()
    for number in range(20):
        store.commit([request(number, "again"), Record("request", f"r{39 - number}", None)], at=3.0 + number)
    copied(folder / "a.db", folder / "crashed")
    store.close()
    return folder / "crashed" / "a.db"


def request(number: int, text: str = "first") -> Record:
    return Record("request", f"r{number}", {"value": number, "filling": text * 30}, note="pending")


def copied(path: Path, folder: Path) -> Path:
    folder.mkdir(parents=True)
    for file in (path, wal_of(path), witness_file(path)):
        if file.exists():
            shutil.copy(file, folder)
    return folder / path.name


def opened(path: Path) -> Any:
    """Return the state and the history of a store, except for this opening."""
    store = SqliteStore(path)
    try:
        loaded = store.open()
        return loaded.state, store.journal(0, 10_000)[:-1]
    finally:
        store.close()


def flips(path: Path, seed: str) -> Iterator[bytes]:
    """Yield copies of the content with bits flipped in one to four bytes, anywhere."""
    rng, content = random.Random(seed), path.read_bytes()
    for _ in range(COPIES):
        changed = bytearray(content)
        for _ in range(rng.choice([1, 1, 1, 4])):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        yield bytes(changed)


@pytest.mark.parametrize("of", [lambda path: path, wal_of, witness_file], ids=["file", "log", "witness"])
def test_damaged_bytes_are_noticed_or_change_nothing(written: Path, tmp_path: Path, of: Any) -> None:
    expected = opened(copied(written, tmp_path / "whole"))
    noticed = 0
    for number, content in enumerate(flips(of(written), f"damage/{of(written).name}")):
        path = copied(written, tmp_path / str(number))
        of(path).write_bytes(content)
        try:
            assert opened(path) == expected
        except JournalError:
            noticed += 1
        shutil.rmtree(path.parent)
    # The rest is in unused bytes, or in the number that only detects a truncated log.
    assert noticed > COPIES / 8 or of is witness_file


def test_truncated_log_is_noticed(written: Path, tmp_path: Path) -> None:
    path = copied(written, tmp_path / "cut")
    content = wal_of(path).read_bytes()
    wal_of(path).write_bytes(content[: len(content) // 2])
    with pytest.raises(DamagedJournalError, match=r"its last \d+ entries are missing: its -wal file is damaged, or"):
        opened(path)
    witness_file(path).unlink()
    assert opened(path)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM state WHERE key = 'r3'",
        "UPDATE state SET body = '{}' WHERE key = 'r3'",
        "UPDATE state SET body = '{}', digest = digest + 1 WHERE key = 'r3'",
        "DELETE FROM held WHERE element = 'port:a'",
        "DELETE FROM state WHERE kind = 'reservation'",
        "UPDATE journal SET note = 'granted' WHERE sequence = 7",
        "DELETE FROM journal WHERE sequence = 7",
        "DELETE FROM journal WHERE sequence > 60",
        "UPDATE meta SET value = 1 WHERE name = 'epoch'",
        "DELETE FROM meta WHERE name = 'epoch'",
    ],
)
def test_uncommitted_changes_of_rows_are_noticed(written: Path, tmp_path: Path, statement: str) -> None:
    path = copied(written, tmp_path / "changed")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    witness_file(path).unlink()
    with pytest.raises(DamagedJournalError):
        opened(path)
    with pytest.raises(DamagedJournalError), contents_of_file(path) as contents:
        list(to_lines(contents))


def test_check_command_reports_damage(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copied(written, tmp_path / "checked")
    assert main(["journal", "check", "--file", str(path)]) == 0
    assert capsys.readouterr().out.endswith(" are intact\n")
    assert main(["journal", "check", "--json", "--file", str(path)]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"rows", "entries", "latest", "epoch"}
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM state WHERE key = 'r3'")
        connection.commit()
    assert main(["journal", "check", "--file", str(path)]) == 1
    assert "rows of its state are missing or outdated): restore it from a backup" in capsys.readouterr().err


def test_damaged_copies_are_noticed_and_leave_nothing(written: Path, tmp_path: Path) -> None:
    with contents_of_file(written) as contents:
        lines = "".join(f"{line}\n" for line in to_lines(contents))
    (tmp_path / "export").write_text(lines)
    imported = tmp_path / "to" / "imported.db"
    imported.parent.mkdir()
    for content in flips(tmp_path / "export", "damage/export"):
        with pytest.raises(NotAnExportError):
            copy_into_file(imported, from_lines(content.splitlines(keepends=True)))
        assert [path.name for path in imported.parent.iterdir()] == ["imported.db.lock"]
    copy_into_file(imported, from_lines(lines.splitlines()))
    assert opened(imported)[0] == opened(copied(written, tmp_path / "whole"))[0]
    assert imported.stat().st_mode & 0o777 == 0o600


@pytest.mark.etcd
def test_damaged_keys_of_etcd_are_noticed_or_change_nothing(controllers: Any) -> None:
    """One byte of a value, or a whole key, of any kind; candidates and leaders have none while no controller runs."""
    keys, connection, rng = controllers.keys, controllers.connection(), random.Random("damage/etcd")
    store = controllers.opened_store()
    store.commit([request(number) for number in range(12)], at=1.0)
    store.commit([Record("reservation", "1", {"state": "lit"}, frozenset({"port:a"})), request(3, "again")], at=2.0)
    store.close()
    everything = KeySpan(keys.prefix.encode(), keys.prefix.encode()[:-1] + b"0")
    written = {bytes(kv.key): bytes(kv.value) for kv in pages(connection, everything)}

    def write(values: dict[bytes, bytes]) -> None:
        for operation in (delete_all(everything), *(put(key, value) for key, value in values.items())):
            connection.call(TXN, api.TxnRequest(success=[operation]))

    def read() -> Any:
        again = controllers.store(StorePolicy(wait=0.0))
        try:
            state, rows = again.open().state, contents_of_etcd(connection, keys).rows
            return state, again.journal(0, 1000)[:-1], list(rows)[:-1]
        finally:
            again.close()

    expected, outcomes = read(), Counter[str]()
    for _ in range(COPIES):
        key = rng.choice(list(written))
        value = bytearray(written[key])
        value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
        damage = {} if rng.random() < 0.2 else {key: bytes(value)}
        write({**{name: other for name, other in written.items() if name != key}, **damage})
        try:
            assert read() == expected
            outcomes[key.removeprefix(keys.prefix.encode()).decode()] += 1
        except JournalError:
            outcomes["noticed"] += 1
    # A larger number of a term is harmless, and the next term takes its own from the clock.
    assert outcomes.keys() <= {"noticed", "epoch", "generation"} and outcomes["noticed"] > 0.7 * COPIES
