"""A disk that is full, fails, or loses power: commits are whole or absent, and what was acknowledged is there."""

import _sqlite3
import ctypes
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store import sqlite as sqlite_store
from blast_controller.store.errors import DiskFailedError, DiskFullError, JournalError
from blast_controller.store.files import wal_of
from blast_controller.store.retention import Retention
from blast_controller.store.sqlite import SqliteStore

SECTOR = 512
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_DELETE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _Vfs(ctypes.Structure):
    _fields_ = (
        [("version", ctypes.c_int), ("file_size", ctypes.c_int), ("longest_path", ctypes.c_int)]
        + [("next", ctypes.c_void_p), ("name", ctypes.c_char_p), ("data", ctypes.c_void_p)]
        + [("open", ctypes.c_void_p), ("delete", ctypes.c_void_p)]
        + [(f"other{n}", ctypes.c_void_p) for n in range(14)]
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        [("version", ctypes.c_int), ("close", ctypes.c_void_p), ("read", ctypes.c_void_p)]
        + [("write", ctypes.c_void_p), ("truncate", ctypes.c_void_p), ("sync", ctypes.c_void_p)]
        + [(f"other{n}", ctypes.c_void_p) for n in range(13)]
    )


@dataclass(frozen=True)
class Operation:
    """Something that reached a file: "write", "truncate", "sync", "delete"; "mark" is the test's own."""

    kind: str
    file: str
    offset: int = 0
    data: bytes = b""


class Disk:
    """A VFS of SQLite, installed by `with`; `fault` is called before each operation and returns an error code or 0."""

    def __init__(self, fault: Callable[[str, str], int] = lambda kind, file: 0) -> None:
        self.fault = fault
        self.operations: list[Operation] = []
        self._paths: dict[int, str] = {}
        self._patched: dict[int, _Methods] = {}
        self._original: dict[int, _Methods] = {}
        self._keep: list[object] = []
        self._library = ctypes.CDLL(_sqlite3.__file__)
        self._library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._default = self._library.sqlite3_vfs_find(None).contents
        self._vfs = _Vfs.from_buffer_copy(self._default)
        self._vfs.name, self._vfs.next = f"disk-{id(self)}".encode(), None
        self._vfs.open, self._vfs.delete = self._pointer(_OPEN(self._open)), self._pointer(_DELETE(self._delete))

    def __enter__(self):
        assert self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == 0
        return self

    def __exit__(self, *_: object) -> None:
        assert self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs)) == 0

    def mark(self, text: str) -> None:
        self.operations.append(Operation("mark", text))

    def _pointer(self, function: object) -> int:
        self._keep.append(function)
        return ctypes.cast(function, ctypes.c_void_p).value

    def _open(self, vfs: int, name: int, file: int, flags: int, out: int) -> int:
        code = _OPEN(self._default.open)(vfs, name, file, flags, out)
        methods = ctypes.c_void_p.from_address(file)
        if code == 0 and methods.value:
            self._paths[file] = Path(ctypes.string_at(name).decode()).name if name else "temporary"
            methods.value = ctypes.addressof(self._patch(methods.value))
        return code

    def _patch(self, methods: int) -> _Methods:
        if methods not in self._patched:
            original = _Methods.from_address(methods)
            patched = _Methods.from_buffer_copy(original)
            patched.write = self._pointer(_WRITE(self._write(_WRITE(original.write))))
            patched.truncate = self._pointer(_TRUNCATE(self._truncate(_TRUNCATE(original.truncate))))
            patched.sync = self._pointer(_SYNC(self._sync(_SYNC(original.sync))))
            self._patched[methods] = patched
        return self._patched[methods]

    def _write(self, original: Callable[..., int]) -> Callable[..., int]:
        def write(file: int, data: int, size: int, offset: int) -> int:
            operation = Operation("write", self._paths[file], offset, ctypes.string_at(data, size))
            return self._do(operation, lambda: original(file, data, size, offset))

        return write

    def _truncate(self, original: Callable[..., int]) -> Callable[..., int]:
        return lambda file, size: self._do(Operation("truncate", self._paths[file], size), lambda: original(file, size))

    def _sync(self, original: Callable[..., int]) -> Callable[..., int]:
        return lambda file, flags: self._do(Operation("sync", self._paths[file]), lambda: original(file, flags))

    def _delete(self, vfs: int, name: bytes, sync: int) -> int:
        operation = Operation("delete", Path(name.decode()).name)
        return self._do(operation, lambda: _DELETE(self._default.delete)(vfs, name, sync))

    def _do(self, operation: Operation, act: Callable[[], int]) -> int:
        code = self.fault(operation.kind, operation.file) or act()
        if code == 0:
            self.operations.append(operation)
        return code


def after_power_cut(files: dict[str, bytes], operations: list[Operation], random: Random) -> dict[str, bytes]:
    """Return the files after these operations and a power cut.

    Any part of the operations that were not synced may be applied, also torn writes.
    """
    durable = {name: bytearray(content) for name, content in files.items()}
    pending: dict[str, list[Operation]] = {}
    for operation in operations:
        match operation.kind:
            case "write" | "truncate":
                pending.setdefault(operation.file, []).append(operation)
            case "sync":
                for waiting in pending.pop(operation.file, ()):
                    _apply(durable, waiting)
            case "delete":
                durable.pop(operation.file, None)
                pending.pop(operation.file, None)
    for waiting in pending.values():
        for operation in waiting:
            if operation.kind == "truncate" and random.random() < 0.5:
                _apply(durable, operation)
            elif operation.kind == "write":
                _apply_torn(durable, operation, random)
    return {name: bytes(content) for name, content in durable.items()}


def _apply(durable: dict[str, bytearray], operation: Operation) -> None:
    content = durable.setdefault(operation.file, bytearray())
    end = operation.offset + len(operation.data)
    content.extend(bytes(max(0, end - len(content))))
    if operation.kind == "truncate":
        del content[operation.offset :]
    else:
        content[operation.offset : end] = operation.data


def _apply_torn(durable: dict[str, bytearray], operation: Operation, random: Random) -> None:
    fate = random.choice(("all", "nothing", "torn"))
    for start in range(0, len(operation.data), SECTOR):
        if fate == "all" or (fate == "torn" and random.random() < 0.5):
            piece = operation.data[start : start + SECTOR]
            _apply(durable, Operation("write", operation.file, operation.offset + start, piece))


FULL, EIO = sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE
EIO_SYNC = sqlite3.SQLITE_IOERR_FSYNC


def commit_of(number):
    """Three records that only make sense together: a counter, a row that comes, one that goes."""
    return [
        Record("request", "counter", {"value": number}),
        Record("reservation", str(number), {"value": number}, frozenset({f"port:{number % 3}"})),
        Record("reservation", str(number + 1), None, frozenset()),
        Record("request", f"r{number}", {"value": "x" * 900}),
        Record("reservation", str(number), None),
    ]


def committed(store):
    """Return the number of commits; fail if one is partial, or missing before another."""
    requests = store.open().of("request")
    count = requests["counter"]["value"] + 1 if requests else 0
    assert list(requests) == (["counter"] if count else []) + [f"r{number}" for number in range(count)]
    store.close()
    return count


class Countdown:
    """The n-th operation of a kind on a file whose name ends so, and all after it, fail."""

    def __init__(self, kind, ending, left, code):
        self.kind, self.ending, self.left, self.code = kind, ending, left, code

    def __call__(self, kind, file):
        if kind != self.kind or not file.endswith(self.ending):
            return 0
        self.left -= 1
        return self.code if self.left < 0 else 0


@pytest.mark.parametrize(
    ("kind", "code", "fault"),
    [("write", FULL, DiskFullError), ("write", EIO, DiskFailedError), ("sync", EIO_SYNC, DiskFailedError)],
)
@pytest.mark.parametrize("left", [0, 2, 9])
def test_failed_commit_is_undone_and_the_next_succeeds(tmp_path, kind, code, fault, left):
    store = SqliteStore(tmp_path / "journal.db")
    with Disk() as disk:
        store.open()
        store.commit(commit_of(0), at=0.0)
        disk.fault = Countdown(kind, "-wal", left, code)
        count = 1
        with pytest.raises(fault, match=r"journal\.db"):
            for _ in range(100):
                store.commit(commit_of(count), at=0.0)
                count += 1
        with pytest.raises(fault):
            store.commit(commit_of(count), at=0.0)
        entries = store.journal(0, 1000)
        assert len(entries) == 1 + 5 * count
        disk.fault = lambda kind, file: 0
        store.commit(commit_of(count), at=0.0)
        assert store.journal(0, 1000)[: len(entries)] == entries
        store.close()
    assert committed(store) == count + 1


@pytest.mark.parametrize(
    ("kind", "code", "fault"), [("write", FULL, DiskFullError), ("sync", EIO_SYNC, DiskFailedError)]
)
def test_failed_compaction_loses_nothing(tmp_path, kind, code, fault):
    store = SqliteStore(tmp_path / "journal.db", Retention(entries=5))
    with Disk() as disk:
        store.open()
        for number in range(10):
            store.commit(commit_of(number), at=0.0)
        disk.fault = Countdown(kind, "journal.db", 0, code)
        with pytest.raises(fault):
            store.compact(at=0.0)
        store.commit(commit_of(10), at=0.0)
        disk.fault = lambda kind, file: 0
        store.compact(at=0.0)
        store.close()
    assert committed(store) == 11


def test_log_in_constant_use_is_restarted(tmp_path, monkeypatch):
    """A commit arrives during every checkpoint, so that no checkpoint covers the whole log."""
    monkeypatch.setattr(sqlite_store, "LONGEST_LOG", 50)
    store = SqliteStore(tmp_path / "journal.db", Retention(entries=10))
    count = 0

    def commit_during_checkpoint(kind, file):
        nonlocal count
        if kind == "sync" and file == "journal.db" and not store._writing.locked():
            store.commit(commit_of(count), at=0.0)
            count += 1
        return 0

    with Disk() as disk:
        store.open()
        store.commit(commit_of(count), at=0.0)
        count += 1
        disk.fault = commit_during_checkpoint
        for _ in range(200):
            store.compact(at=0.0)
        disk.fault = lambda kind, file: 0
        assert wal_of(store.path).stat().st_size < 150 * 4096
        store.close()
    assert count > 150
    assert committed(store) == count


@pytest.mark.parametrize("left", [0, 1, 3, 6, 11])
def test_first_start_on_a_failing_disk_can_be_repeated(tmp_path, left):
    store = SqliteStore(tmp_path / "journal.db")
    with Disk() as disk:
        disk.fault = Countdown("write", "", left, FULL)
        with pytest.raises(DiskFullError):
            store.open()
            # So late that the opening went through: a commit then meets the fault.
            for number in range(20):
                store.commit(commit_of(number), at=0.0)
        store.close()
        disk.fault = lambda kind, file: 0
        assert committed(store) == 0


def test_commit_returns_after_its_last_write_is_synced(tmp_path):
    store = SqliteStore(tmp_path / "journal.db")
    with Disk() as disk:
        store.open()
        for number in range(20):
            before = len(disk.operations)
            store.commit(commit_of(number), at=0.0)
            kinds = [operation.kind for operation in disk.operations[before:] if operation.file.endswith("-wal")]
            assert "write" in kinds
            assert kinds[-1] == "sync"
        store.close()


@pytest.mark.parametrize("seed", range(3))
def test_power_cut_at_any_point_leaves_whole_commits(tmp_path, monkeypatch, seed):
    """Compaction restarts the log repeatedly; all data that is not synced may be lost, kept or torn."""
    monkeypatch.setattr(sqlite_store, "LONGEST_LOG", 30)
    random = Random(seed)
    path = tmp_path / "journal.db"
    store = SqliteStore(path, Retention(entries=40))
    assert committed(store) == 0
    files = {path.name: path.read_bytes()}
    with Disk() as disk:
        store.open()
        for number in range(40):
            store.commit(commit_of(number), at=0.0)
            disk.mark(str(number + 1))
            if random.random() < 0.3:
                store.compact(at=0.0)
        operations = list(disk.operations)
        store.close()
    assert any(operation.kind == "write" and operation.file == path.name for operation in operations)
    for trial in range(25):
        cut = random.randrange(len(operations))
        acknowledged = max((int(o.file) for o in operations[:cut] if o.kind == "mark"), default=0)
        image = tmp_path / f"cut{trial}"
        image.mkdir()
        for name, content in after_power_cut(files, operations[:cut], random).items():
            (image / name).write_bytes(content)
        assert committed(SqliteStore(image / path.name)) in (acknowledged, acknowledged + 1)
        shutil.rmtree(image)


def test_power_cut_model_detects_commits_that_are_not_synced(tmp_path):
    """The same cut on a store that does not wait for the disk loses acknowledged commits."""
    path = tmp_path / "journal.db"
    store = SqliteStore(path)
    assert committed(store) == 0
    files = {path.name: path.read_bytes()}
    with Disk() as disk:
        store.open()
        store._current().writer.execute("PRAGMA synchronous = NORMAL")
        for number in range(5):
            store.commit(commit_of(number), at=0.0)
        operations = list(disk.operations)
        store.close()
    lost = 0
    for seed in range(10):
        image = tmp_path / f"cut{seed}"
        image.mkdir()
        for name, content in after_power_cut(files, operations, Random(seed)).items():
            (image / name).write_bytes(content)
        lost += committed(SqliteStore(image / path.name)) < 5
    assert lost


# ----------------------------------------------------------------------------------------------------------- kill -9

WRITE = """
import sys, time
from pathlib import Path
from blast_controller.store.compaction import Compactor
from blast_controller.store.retention import Retention
from blast_controller.store.sqlite import SqliteStore
sys.path.insert(0, sys.argv[3])
from tests.blast_controller.store.test_store_disk import commit_of
store = SqliteStore(Path(sys.argv[1]), Retention(entries=30))
store.open()
Compactor(store, print, interval=0.002).start()
number = int(sys.argv[2])
while True:
    store.commit(commit_of(number), at=time.time())
    number += 1
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def test_kill_9_at_any_point_leaves_whole_commits(tmp_path, request):
    random = Random()
    store = SqliteStore(tmp_path / "journal.db")
    there = 0
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE, str(store.path), str(there), str(request.config.rootpath)],
            stdout=subprocess.PIPE,
            text=True,
            close_fds=True,
        )
        try:
            acknowledged = int(writer.stdout.readline())
            time.sleep(random.uniform(0, 0.03))  # the moment of the kill is random on purpose
        finally:
            writer.kill()
            rest = writer.stdout.read()
            writer.stdout.close()
            assert writer.wait() == -9
        # The kill may cut the last line in two.
        acknowledged = max([acknowledged, *(int(line) for line in rest.splitlines(keepends=True) if line[-1] == "\n")])
        there = committed(store)
        assert acknowledged <= there <= acknowledged + 1
    with pytest.raises(JournalError):
        store.journal(0, 1)
