"""Targets of received data: files, commands and memory."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from blast_transport.base.errors import ForgottenError, StoreError, UnsafeNameError, WrongInputError
from blast_transport.store.targets.command_target import CommandTarget, kill_commands
from blast_transport.store.targets.file_target import STALE_SECONDS, FileRules, FileTarget, open_directory
from blast_transport.store.targets.memory_target import MemoryTarget
from tests.support.waiting import HANGING, eventually

CONTENT = bytes(range(256)) * 3 + b"tail"


def file_target(directory: Path, name: str = "file.bin", size: int | None = len(CONTENT), identity: str = "id"):
    return FileTarget(open_directory(directory), directory, name, size, identity)


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


# ------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("fsync", [False, True])
def test_file_appears_only_when_committed(tmp_path: Path, fsync: bool) -> None:
    target = file_target(tmp_path)
    for begin in reversed(range(0, len(CONTENT), 100)):
        target.write(begin, CONTENT[begin : begin + 100])
        assert not (tmp_path / "file.bin").exists()
    target.commit(len(CONTENT), fsync=fsync)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == ["file.bin"]
    target.discard(resumable=False)
    assert (tmp_path / "file.bin").exists()


@pytest.mark.parametrize("name", ["x" * 201, "ü" * 127 + "x"], ids=len)
def test_longest_file_name_is_accepted_and_resumed(tmp_path: Path, name: str) -> None:
    first = file_target(tmp_path, name, identity="0" * 32)
    first.write(0, CONTENT)
    first.discard(resumable=True)
    assert len(names(tmp_path)) == 2, "the data and the record of its blocks"
    target = file_target(tmp_path, name, identity="0" * 32)
    target.write(0, CONTENT)
    target.commit(len(CONTENT), fsync=False)
    assert names(tmp_path) == [name] and (tmp_path / name).read_bytes() == CONTENT


def test_discarded_file_leaves_no_remains_and_keeps_old_file(tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_text("old")
    target = file_target(tmp_path)
    target.write(0, b"half")
    target.discard(resumable=False)
    target.discard(resumable=False)
    assert names(tmp_path) == ["file.bin"] and (tmp_path / "file.bin").read_text() == "old"
    with pytest.raises(StoreError, match="given up"):
        target.commit(4, fsync=False)


@pytest.fixture(params=[0o000, 0o177], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    return {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in directory.iterdir()}


@pytest.mark.parametrize("rules", [FileRules(), FileRules(mode=0o640), FileRules(mode=0o666)], ids=str)
def test_file_gets_configured_mode_regardless_of_umask(tmp_path: Path, umask: int, rules: FileRules) -> None:
    target = FileTarget(open_directory(tmp_path), tmp_path, "file.bin", 4, "id", rules)
    target.write(0, b"data")
    target.note(0, [bytes(16)])
    assert set(modes(tmp_path).values()) == {0o600}, "incomplete data and its records are private"
    target.commit(4, fsync=False)
    assert modes(tmp_path) == {"file.bin": rules.mode}


def test_stream_is_rejected_beyond_size_limit(tmp_path: Path) -> None:
    target = FileTarget(open_directory(tmp_path), tmp_path, "file.bin", None, "id", FileRules(max_bytes=100))
    target.write(0, CONTENT[:60])
    target.write(60, CONTENT[60:100])
    with pytest.raises(StoreError, match="more bytes came than the 100 that this agent takes"):
        target.write(100, b"x")
    with pytest.raises(StoreError, match="more bytes came"):
        target.write(90, CONTENT[:11])
    target.discard(resumable=False)
    assert names(tmp_path) == []


def test_too_large_file_is_rejected_without_remains(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="101 bytes are more than the 100 that this agent takes"):
        FileTarget(open_directory(tmp_path), tmp_path, "file.bin", 101, "id", FileRules(max_bytes=100))
    assert names(tmp_path) == []


def test_durable_commit_syncs_file_before_and_folder_after_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, list[str]]] = []

    def fsync(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        synced.append((kind, names(tmp_path)))

    monkeypatch.setattr(os, "fsync", fsync)
    target = file_target(tmp_path)
    target.write(0, CONTENT)
    assert target.commit(len(CONTENT), fsync=True) is True
    assert synced == [("file", [".blast-id-file.bin", ".blast-id-file.bin.blocks"]), ("folder", ["file.bin"])]
    assert file_target(tmp_path, "other.bin").commit(0, fsync=False) is False
    assert len(synced) == 2


def test_missing_disk_space_is_reported_before_any_data(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="do not fit"):
        file_target(tmp_path, size=1 << 60)
    assert names(tmp_path) == []


def test_resumed_data_needs_no_additional_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1 << 16
    target = file_target(tmp_path, size=size)
    target.write(0, bytes(size))
    target.discard(resumable=True)
    full = os.statvfs_result((4096, 4096, 9, 0, 0, 9, 9, 9, 0, 255))
    monkeypatch.setattr(os, "fstatvfs", lambda descriptor: full)
    file_target(tmp_path, size=size).discard(resumable=True)
    with pytest.raises(StoreError, match="do not fit"):
        file_target(tmp_path, size=size + 4096)
    assert (tmp_path / ".blast-id-file.bin").stat().st_size == size, "the remains can still be resumed"


def test_two_sessions_do_not_write_same_partial_file(tmp_path: Path) -> None:
    target = file_target(tmp_path)
    with pytest.raises(StoreError, match="another session"):
        file_target(tmp_path)
    other = file_target(tmp_path, identity="other")
    other.write(0, b"four")
    target.write(0, CONTENT)
    target.commit(len(CONTENT), fsync=False)
    other.commit(4, fsync=False)
    assert (tmp_path / "file.bin").read_bytes() == b"four"
    file_target(tmp_path).discard(resumable=False)


def test_lock_ends_with_session_despite_duplicated_descriptor(tmp_path: Path) -> None:
    target = file_target(tmp_path)
    assert target.descriptor is not None
    duplicate = os.dup(target.descriptor)
    try:
        target.discard(resumable=True)
        file_target(tmp_path).discard(resumable=False)
    finally:
        os.close(duplicate)


def test_session_that_waited_for_lock_does_not_write_finished_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between open and lock, the holder of the lock commits the file."""
    first, opened = file_target(tmp_path), FileTarget._open

    def open_late(target: FileTarget, name: str) -> int:
        descriptor = opened(target, name)
        if first.descriptor is not None and not name.endswith(".blocks"):
            first.write(0, CONTENT)
            first.commit(len(CONTENT), fsync=False)
        return descriptor

    monkeypatch.setattr(FileTarget, "_open", open_late)
    second = file_target(tmp_path)
    second.write(0, b"garbage")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    second.discard(resumable=False)
    assert names(tmp_path) == ["file.bin"]


def test_concurrent_discard_and_commit_close_descriptors_once(tmp_path: Path) -> None:
    for _ in range(30):
        target = file_target(tmp_path)
        target.write(0, CONTENT)
        threads = [
            threading.Thread(target=lambda target=target: target.discard(resumable=False)),
            threading.Thread(target=lambda target=target: commit_or_not(target)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(names(tmp_path)) <= {"file.bin"}
        assert target.descriptor is None


def commit_or_not(target: FileTarget) -> None:
    try:
        target.commit(len(CONTENT), fsync=False)
    except StoreError as error:
        assert "given up" in str(error)


def test_readable_remains_become_private(tmp_path: Path) -> None:
    target = file_target(tmp_path)
    target.write(0, CONTENT)
    target.discard(resumable=True)
    for remains in tmp_path.iterdir():
        remains.chmod(0o644)
    again = file_target(tmp_path)
    assert set(modes(tmp_path).values()) == {0o600}
    again.discard(resumable=False)


def test_only_stale_remains_are_removed(tmp_path: Path) -> None:
    for name, age in ((".blast-old-f", STALE_SECONDS + 60), (".blast-new-f", 60.0), ("precious", STALE_SECONDS * 9)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    file_target(tmp_path).discard(resumable=False)
    assert names(tmp_path) == [".blast-new-f", "precious"]


@pytest.mark.parametrize("name", ["file.bin", "file.blocks", "file.blocks.blocks"])
def test_idle_session_keeps_its_partial_file(tmp_path: Path, name: str) -> None:
    """A stream may pause for days, and a name may end like the name of the records."""
    pausing = file_target(tmp_path, name, identity="long")
    pausing.write(0, CONTENT)
    pausing.note(0, [bytes(16)])
    ended = file_target(tmp_path, "other.bin", identity="over")
    ended.write(0, CONTENT)
    ended.discard(resumable=True)
    kept = set(names(tmp_path)) - {".blast-over-other.bin", ".blast-over-other.bin.blocks"}
    for entry in tmp_path.iterdir():
        os.utime(entry, (time.time() - 2 * STALE_SECONDS,) * 2)
    later = file_target(tmp_path, "later.bin")
    assert set(names(tmp_path)) == {*kept, ".blast-id-later.bin", ".blast-id-later.bin.blocks"}
    later.discard(resumable=False)
    pausing.commit(len(CONTENT), fsync=False)
    assert names(tmp_path) == [name] and (tmp_path / name).read_bytes() == CONTENT


def test_symbolic_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    outside, directory = tmp_path / "outside", tmp_path / "in"
    outside.write_text("precious")
    directory.mkdir()
    (directory / "file.bin").symlink_to(outside)
    target = file_target(directory)
    target.write(0, CONTENT)
    target.commit(len(CONTENT), fsync=False)
    assert outside.read_text() == "precious" and (directory / "file.bin").read_bytes() == CONTENT
    (directory / ".blast-id-file.bin").symlink_to(outside)
    with pytest.raises(StoreError):
        file_target(directory)
    assert outside.read_text() == "precious"


@pytest.mark.parametrize(
    "name",
    ["", "..", "a/b", "a\\b", "nul\0", "ü" * 128, ".blast-1", "\udcff"],
)
def test_unsafe_names_are_rejected(tmp_path: Path, name: str) -> None:
    directory = open_directory(tmp_path)
    try:
        with pytest.raises(UnsafeNameError):
            FileTarget(directory, tmp_path, name, 1, "id")
    finally:
        os.close(directory)
    assert names(tmp_path) == []


def test_missing_directory_raises_store_error(tmp_path: Path) -> None:
    directory = tmp_path / "gone"
    directory.mkdir()
    descriptor = open_directory(directory)
    directory.rmdir()
    with pytest.raises(StoreError, match="No such file"):
        FileTarget(descriptor, directory, "f", 1, "id")
    with pytest.raises(WrongInputError, match="create it first"):
        open_directory(directory)


# ---------------------------------------------------------------------------------------------------- commands


@dataclass(frozen=True)
class Run:
    """A command of a test."""

    arguments: tuple[str, ...]
    folder: Path
    name: str = "test"
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"]})
    report_errors: bool = False


Command = Callable[..., CommandTarget]


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    made: list[CommandTarget] = []

    def make(*arguments: str, **options: float) -> CommandTarget:
        made.append(CommandTarget(Run(arguments, tmp_path), **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for target in made:
        target.discard(resumable=False)


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def test_command_receives_all_data_in_order(tmp_path: Path, command: Command) -> None:
    target = command("dd", "of=out", "status=none")
    for begin in range(0, len(CONTENT), 100):
        target.write(begin, CONTENT[begin : begin + 100])
    target.commit(len(CONTENT), fsync=False)
    assert (tmp_path / "out").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("program", "reason"), [("import sys; sys.exit(3)", "exit status 3"), ("import os; os.abort()", "signal 6")]
)
def test_failed_command_is_reported(command: Command, program: str, reason: str) -> None:
    target = command(*python(program))
    with pytest.raises(StoreError, match=reason):
        target.commit(0, fsync=False)


FAILING_PROGRAM = "import sys; sys.stderr.write('one\\n\\x1b[2Jtwo\\n\\n'); sys.stdout.write('three'); sys.exit(3)"


def test_last_error_line_is_reported_only_if_permitted(tmp_path: Path, capfd) -> None:
    for reports, end in ((True, r"\(exit status 3\): \?\[2Jtwo$"), (False, r"\(exit status 3\)$")):
        target = CommandTarget(Run(python(FAILING_PROGRAM), tmp_path, report_errors=reports))
        with pytest.raises(StoreError, match=end):
            target.commit(0, fsync=False)
        target.discard(resumable=False)
        out, errors = capfd.readouterr()
        assert not out and "one" in errors and "three" in errors, "our standard output is for events"


def test_command_that_ends_early_is_reported_with_its_error(tmp_path: Path) -> None:
    target = CommandTarget(Run(("sh", "-c", "echo no room >&2; exit 4"), tmp_path, report_errors=True))
    with pytest.raises(StoreError, match=r"takes no more data \(exit status 4\): no room"):
        for offset in range(100):
            target.write(offset << 16, bytes(1 << 16))
    target.discard(resumable=False)


def test_kept_standard_error_of_command_is_bounded(tmp_path: Path) -> None:
    flood = "import sys; sys.stderr.write('x' * (1 << 20) + '\\n' + 'y' * 5000); sys.exit(1)"
    target = CommandTarget(Run(python(flood), tmp_path, report_errors=True))
    with pytest.raises(StoreError) as caught:
        target.commit(0, fsync=False)
    assert str(caught.value).endswith("y" * 200) and len(str(caught.value)) < 300
    target.discard(resumable=False)


def test_command_that_stops_reading_times_out(command: Command) -> None:
    target = command("sleep", "60", timeout=0.2)
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"no data for 0\.2 s"):
        target.write(0, bytes(1 << 20))
    assert time.monotonic() - began < HANGING


def test_discard_ends_command_and_its_children(tmp_path: Path, command: Command) -> None:
    target = command("sh", "-c", "sleep 60 & echo $! > child; wait")
    pid_file = tmp_path / "child"
    child = int(eventually(lambda: pid_file.exists() and pid_file.read_text(), "the child's number"))
    target.discard(resumable=True)
    eventually(lambda: not is_running(child), "the child's end")
    with pytest.raises(StoreError, match=f"signal {signal.SIGTERM.value}"):
        target.commit(0, fsync=False)


def test_kill_commands_includes_command_that_is_starting(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it outlives an agent that a second signal ends, and processes partial data."""
    start, killers = subprocess.Popen, list[threading.Thread]()

    def started(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = start(*arguments, **options)
        killers.append(threading.Thread(target=kill_commands))
        killers[0].start()
        killers[0].join(0.1)  # it must not finish before the command is registered
        return process

    monkeypatch.setattr(subprocess, "Popen", started)
    target = command("sleep", "60")
    killers[0].join(HANGING)
    with pytest.raises(StoreError, match=f"signal {signal.SIGKILL.value}"):
        target.commit(0, fsync=False)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_missing_program_is_reported(command: Command) -> None:
    with pytest.raises(StoreError, match="No such file"):
        command("/nonexistent/program")


def test_command_target_replays_recent_data(command: Command) -> None:
    target = command("cat", replay_bytes=250)
    for begin in range(0, 500, 50):
        target.write(begin, CONTENT[begin : begin + 50])
    view = memoryview(bytearray(120))
    assert target.read(270, view) == 120
    assert bytes(view) == CONTENT[270:390]
    assert target.read(490, view) == 10
    assert target.read(500, view) == 0
    with pytest.raises(ForgottenError) as caught:
        target.read(200, view)
    assert 200 < caught.value.first_held <= 250


# ------------------------------------------------------------------------------------------------------ memory


def test_memory_accepts_any_order_and_completes_on_commit() -> None:
    target = MemoryTarget("m", 1000)
    target.write(500, CONTENT[500:])
    target.write(0, CONTENT[:500])
    view = memoryview(bytearray(20))
    assert target.read(490, view) == 20 and bytes(view) == CONTENT[490:510]
    assert not target.complete
    target.commit(len(CONTENT), fsync=False)
    assert target.complete and target.data == CONTENT
    target.discard(resumable=False)
    assert target.data == CONTENT


def test_memory_is_bounded_and_cleared_on_discard() -> None:
    target = MemoryTarget("m", 10)
    target.write(0, b"0123456789")
    with pytest.raises(StoreError, match="10 bytes"):
        target.write(1, b"0123456789")
    target.discard(resumable=True)
    assert target.data == b""
