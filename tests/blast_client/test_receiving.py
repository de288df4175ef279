"""`receive` waits for an object up to its timeout, and returns the newest one."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from blast_base import extras
from blast_client import (
    InvalidArgumentError,
    MissingLibraryError,
    NotReceivedError,
    UnreadableObjectError,
    async_receive,
    receive,
)
from blast_client.objects import receiving
from tests.support.transport.objects import put, there


def test_receive_waits_for_object(tmp_path: Path) -> None:
    timer = threading.Timer(0.05, put, (tmp_path, "it.bytes", b"late"))
    timer.start()
    assert receive("it", tmp_path, timeout=30) == b"late"
    timer.join()


def test_async_receive_does_not_block_event_loop(tmp_path: Path) -> None:
    async def both() -> object:
        waiting = asyncio.create_task(async_receive("it", tmp_path, timeout=30))
        await asyncio.sleep(0)  # lets it begin to wait
        put(tmp_path, "it.bytes", b"late")
        return await waiting

    assert asyncio.run(both()) == b"late"


def test_receive_raises_error_at_timeout(tmp_path: Path) -> None:
    put(tmp_path, ".blast-0-it.bytes", b"half")
    with pytest.raises(NotReceivedError, match=rf"'it' did not arrive in {tmp_path} within 0.01 s"):
        receive("it", tmp_path, timeout=0.01)


def test_receive_returns_newest_object_of_a_name(tmp_path: Path) -> None:
    assert there(tmp_path, b"first") == b"first"
    put(tmp_path, "it", b"a file")
    os.utime(tmp_path / "it", ns=(1, 1))
    assert receive("it", tmp_path, timeout=0) == b"first"
    os.utime(tmp_path / "it.bytes", ns=(0, 0))
    assert receive("it", tmp_path, timeout=0) == tmp_path / "it"
    assert receive("it.bytes", tmp_path, timeout=0) == tmp_path / "it.bytes", "the file itself"


def test_object_without_keep_is_unlinked_but_readable(tmp_path: Path) -> None:
    assert there(tmp_path, b"once", keep=False) == b"once"
    assert list(tmp_path.iterdir()) == []


def test_object_that_arrives_during_receive_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "it.bytes", b"first")
    mapped = receiving._mapped_bytes

    def slowly(path: Path) -> memoryview:
        put(tmp_path, "it.bytes", b"second")
        return mapped(path)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(receiving, "_mapped_bytes", slowly)
        assert receive("it", tmp_path, timeout=0, keep=False) == b"first"
    assert receive("it", tmp_path, timeout=0, keep=False) == b"second"


def test_missing_library_raises_error_and_keeps_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "it.npy", b"")
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    for keep in (True, False):
        with pytest.raises(MissingLibraryError, match="numpy not installed"):
            receive("it", tmp_path, timeout=0, keep=keep)
    assert [path.name for path in tmp_path.iterdir()] == ["it.npy"], "an unreadable object is kept"


def test_receive_uses_directory_of_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job-1").mkdir()
    put(tmp_path, "job-1/it.bytes", b"x")
    monkeypatch.setenv("BLAST_FOLDER", str(tmp_path))
    assert receive("job-1/it", timeout=0) == b"x"


@pytest.mark.parametrize("name", ["../it", "/it", "", "a/../b", "\n"])
def test_receive_rejects_invalid_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="name is not valid"):
        receive(name, tmp_path)


def test_receive_rejects_arguments_of_wrong_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ({"name": 3}, {"name": "x", "timeout": "1"}):
        with pytest.raises(InvalidArgumentError, match=r"name must be a str|number of seconds"):
            receive(folder=tmp_path, **wrong)  # type: ignore[arg-type]
    monkeypatch.setattr(receiving, "find_spec", lambda name: None)
    with pytest.raises(MissingLibraryError, match="'torch' is not installed"):
        receive("x", tmp_path, library="torch")


def test_receive_rejects_invalid_arguments_without_waiting(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="not a readable directory"):
        receive("it", tmp_path / "none")
    with pytest.raises(InvalidArgumentError, match="library"):
        receive("it", tmp_path, library="jax")
    with pytest.raises(InvalidArgumentError, match="timeout"):
        receive("it", tmp_path, timeout=float("nan"))


def test_unreadable_file_raises_error_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "it.bytes", b"x")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UnreadableObjectError, match=f"{path}.*Permission denied.*file_mode"):
        receive("it", tmp_path, timeout=0)
