"""What a process has claimed stays while it lives, however it ends; nothing else is touched."""

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


def test_a_claim_holds_until_the_last_process_is_killed(tmp_path: Path, claimed: Path) -> None:
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


def test_a_new_claim_is_left_to_whoever_is_about_to_hold_it(tmp_path: Path) -> None:
    folder = claim(tmp_path / "app-2", age=0.0)
    Claims([tmp_path]).sweep()
    assert (folder / "data").exists()


def test_what_is_on_its_way_is_no_reason_to_remove(tmp_path: Path, claimed: Path) -> None:
    (claimed / "data").write_bytes(b"y")
    Claims([tmp_path]).sweep()
    assert (claimed / "data").exists()


def test_the_agent_makes_one_for_the_first_file_and_no_more_than_so_many(tmp_path: Path) -> None:
    make_claimed(tmp_path, "app-3")
    assert (tmp_path / "app-3").stat().st_mode & 0o777 == 0o700
    with held(tmp_path / "app-3"):
        make_claimed(tmp_path, "app-3")
    (tmp_path / "file").touch()
    make_claimed(tmp_path, "file")
    for number in range(1100):
        make_claimed(tmp_path, f"many-{number}")
    assert len(list(tmp_path.iterdir())) == 1024


def test_a_sender_needs_no_folder_there_where_they_are_claimed(tmp_path: Path) -> None:
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


def test_what_is_not_claimed_is_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "data").write_bytes(b"x")
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / CLAIM).touch()
    Claims([tmp_path, tmp_path / "nowhere"]).sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == [CLAIM, "file", "folder"]


def test_nothing_is_removed_through_a_link_or_a_claim_that_is_no_file(tmp_path: Path, claimed: Path) -> None:
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


def test_it_looks_now_and_then(tmp_path: Path) -> None:
    claims = Claims([tmp_path])
    first = claim(tmp_path / "first")
    claims.look(100.0)
    eventually(lambda: not first.exists())
    # In a thread that may still run begins no second one.
    second = claim(tmp_path / "second")
    claims.look(104.0)
    assert second.exists()
    eventually(lambda: _looked(claims, second))


def _looked(claims: Claims, folder: Path) -> bool:
    claims.look(106.0)
    return not folder.exists()
