"""Claimed folders: kept until the last claiming process ends, then removed; other files stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blast_transport.agent.claims import CLAIM, Claims, make_claimed
from blast_transport.agent.permissions import Permissions
from blast_transport.agent.settings import FolderSection, Settings
from blast_transport.base.errors import UnsafeNameError
from tests.support.waiting import eventually

HOLD = """
import fcntl, sys
claim = open(sys.argv[1], "r+")
fcntl.lockf(claim, fcntl.LOCK_SH)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD, str(folder / CLAIM)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def claimed(tmp_path: Path) -> Path:
    return claim(tmp_path / "app-1")


def claim(folder: Path, age: float = 60.0) -> Path:
    folder.mkdir()
    (folder / "data").write_bytes(b"x")
    (folder / "deeper").mkdir()
    (folder / CLAIM).touch()
    when = time.time() - age
    for path in (*folder.iterdir(), folder):
        os.utime(path, (when, when))
    return folder


def test_sweep_removes_folder_after_last_claiming_process_ends(tmp_path: Path, claimed: Path) -> None:
    claims = Claims([tmp_path])
    with held(claimed) as first, held(claimed):
        claims.sweep()
        assert (claimed / "data").exists()
        first.kill()
        first.wait()
        claims.sweep()
        assert (claimed / "data").exists()
    claims.sweep()
    assert not claimed.exists()


def test_sweep_keeps_new_claim_without_process(tmp_path: Path) -> None:
    folder = claim(tmp_path / "app-2", age=0.0)
    Claims([tmp_path]).sweep()
    assert (folder / "data").exists()


def test_sweep_keeps_folder_with_recent_write(tmp_path: Path, claimed: Path) -> None:
    (claimed / "data").write_bytes(b"y")
    Claims([tmp_path]).sweep()
    assert (claimed / "data").exists()


def test_agent_creates_private_claimed_folders_up_to_limit(tmp_path: Path) -> None:
    make_claimed(tmp_path, "app-3")
    assert (tmp_path / "app-3").stat().st_mode & 0o777 == 0o700
    with held(tmp_path / "app-3"):
        make_claimed(tmp_path, "app-3")
    (tmp_path / "file").touch()
    make_claimed(tmp_path, "file")
    for number in range(1100):
        make_claimed(tmp_path, f"many-{number}")
    assert len(list(tmp_path.iterdir())) == 1024


def test_file_permission_creates_claimed_folder(tmp_path: Path) -> None:
    def allowed(claimed: bool, name: str) -> None:
        folder = FolderSection("spark", tmp_path, claimed)
        Permissions(Settings(folder=(folder,))).allow("file", name).close()

    with pytest.raises(UnsafeNameError, match="cannot be entered"):
        allowed(False, "app/1")
    allowed(True, "app/1")
    assert (tmp_path / "app" / CLAIM).exists()
    with pytest.raises(UnsafeNameError, match="cannot be entered"):
        allowed(True, "app/deeper/1")
    allowed(True, "plain")
    assert not (tmp_path / "plain").exists()


def test_sweep_keeps_folders_and_files_without_claim(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "data").write_bytes(b"x")
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / CLAIM).touch()
    Claims([tmp_path, tmp_path / "nowhere"]).sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == [CLAIM, "file", "folder"]


def test_sweep_ignores_symlinks_and_claims_that_are_no_files(tmp_path: Path, claimed: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "link").symlink_to(claimed)
    for name, make in {
        "fifo": os.mkfifo,
        "linked": lambda path: path.symlink_to(claimed / CLAIM),
        "folder": Path.mkdir,
    }.items():
        (base / name).mkdir()
        make(base / name / CLAIM)
    Claims([base]).sweep()
    assert (claimed / "data").exists()
    assert sorted(path.name for path in base.iterdir()) == ["fifo", "folder", "link", "linked"]


def test_claims_are_swept_periodically_by_one_thread(tmp_path: Path) -> None:
    claims = Claims([tmp_path])
    first = claim(tmp_path / "first")
    claims.look(100.0)
    eventually(lambda: not first.exists())
    # No second sweep starts while the thread of the first one may still run.
    second = claim(tmp_path / "second")
    claims.look(104.0)
    assert second.exists()
    eventually(lambda: _swept(claims, second))


def _swept(claims: Claims, folder: Path) -> bool:
    claims.look(106.0)
    return not folder.exists()
