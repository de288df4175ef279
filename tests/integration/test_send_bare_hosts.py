"""`blast send --ssh` to hosts that have nothing but sshd and Python: Figure 2 of the Kascade paper, word for word.

Each host is a mount namespace with its own /home, /opt and /dev; its /dev/sda2 is a loop device.
"""

from __future__ import annotations

import os
import socket
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from blast_transport.base.errors import StoreError
from blast_transport.store.device_target import DeviceTarget
from tests.support.bare_hosts import BareHosts, lacks

pytestmark = pytest.mark.skipif(lacks() is not None, reason=lacks() or "")

NAMES = ["n2", "n3", "n4"]
DISK = 1 << 20
_ATTEMPTS = 3


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareHosts]:
    with BareHosts(tmp_path_factory.mktemp("bare"), NAMES, DISK).running() as running:
        yield running


@contextmanager
def system_log(hosts: BareHosts, name: str) -> Iterator[socket.socket]:
    """What listens on a host's /dev/log."""
    folder = os.open(hosts.path(name, "dev"), os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
            # By way of the open folder, whose own path may be longer than an address can be.
            log.bind(f"/proc/self/fd/{folder}/log")
            log.setblocking(False)
            yield log
    finally:
        hosts.path(name, "dev/log").unlink()
        os.close(folder)


def archive(folder: Path) -> bytes:
    """myfile.tgz, with one file in it."""
    content = os.urandom(300_000)
    with tarfile.open(folder / "myfile.tgz", "w:gz") as tar:
        entry = tarfile.TarInfo("data/content")
        entry.size = len(content)
        tar.addfile(entry, BytesIO(content))
    return content


def run(hosts: BareHosts, line: str, folder: Path, told: str = "3 of 3") -> CompletedProcess[str]:
    """So many of them have it in the end.

    A machine that does much else may be too late for what a sender itself waits for; then it is tried again.
    """
    for _ in range(_ATTEMPTS):
        done = hosts.run(line, folder)
        if done.stdout.startswith(f"{told} receivers have it, verified"):
            return done
    raise AssertionError(f"{line!r} has ended with {done.returncode}: {done.stdout}{done.stderr}")


def test_figure_2_a_file_to_three_hosts(hosts: BareHosts, tmp_path: Path) -> None:
    archive(tmp_path)
    run(hosts, "blast send myfile.tgz --to n2,n3,n4 --ssh --ssh-folder /home/login", tmp_path)
    for name in NAMES:
        assert hosts.path(name, "/home/login/myfile.tgz").read_bytes() == (tmp_path / "myfile.tgz").read_bytes()


def test_figure_2_an_archive_that_is_unpacked_on_the_fly(hosts: BareHosts, tmp_path: Path) -> None:
    content = archive(tmp_path)
    with system_log(hosts, "n3") as log:
        run(hosts, "blast send myfile.tgz --to n2,n3,n4 --ssh --command 'tar -xzC /opt/'", tmp_path)
        told = log.recv(4096).decode()
    assert told.endswith("for user 0, from 127.0.0.1, may run tar -xzC /opt/"), told
    for name in NAMES:
        assert hosts.path(name, "/opt/data/content").read_bytes() == content


def test_figure_2_a_partition_that_is_cloned(hosts: BareHosts, tmp_path: Path) -> None:
    content = os.urandom(DISK // 2) + bytes(DISK // 2)
    hosts.disk("n1").write_bytes(content)
    line = "dd if=/dev/sda2 | gzip | blast send - --to n2,n3,n4 --ssh --command 'gunzip | dd of=/dev/sda2'"
    run(hosts, line, tmp_path)
    for name in NAMES:
        assert disk_of(hosts, name) == content


def disk_of(hosts: BareHosts, name: str) -> bytes:
    """What is on /dev/sda2 of a host."""
    assert hosts.path(name, "/dev/sda2").is_block_device()
    return hosts.path(name, "/dev/sda2").read_bytes()


def test_a_command_that_fails_on_one_host_says_why_and_the_lists_are_true(hosts: BareHosts, tmp_path: Path) -> None:
    """Its first part fails, which the last one does not notice."""
    archive(tmp_path)
    command = "{ cat >/dev/null; [ ! -e /opt/broken ] || ls /no/such/file; } | cat"
    line = f"blast send myfile.tgz --to n[2-4] --ssh --command '{command}' --start-timeout 2min"
    line += " --ok-file ok --failed-file failed"
    hosts.path("n3", "/opt/broken").touch()
    try:
        done = run(hosts, line, tmp_path, "2 of 3")
    finally:
        hosts.path("n3", "/opt/broken").unlink()
    assert done.returncode == 3, done.stderr
    assert (tmp_path / "ok").read_text() == "n2\nn4\n"
    failed = (tmp_path / "failed").read_text()
    assert (
        failed.startswith("n3\t# ")
        and "the command sh failed (exit status 2): ls: " in failed
        and "/no/such/file" in failed
    )


@contextmanager
def without_device(hosts: BareHosts, name: str) -> Iterator[None]:
    """A host that has no /dev/sda2."""
    device, away = hosts.path(name, "/dev/sda2"), hosts.path(name, "/dev/away")
    device.rename(away)
    try:
        yield
    finally:
        away.rename(device)


def test_a_device_is_overwritten_where_it_can_be(hosts: BareHosts, tmp_path: Path) -> None:
    content = os.urandom(DISK // 4)
    (tmp_path / "disk.img").write_bytes(content)
    before = {name: disk_of(hosts, name) for name in NAMES}
    taken = os.open(hosts.path("n4", "/dev/sda2"), os.O_RDONLY | os.O_EXCL)
    try:
        with without_device(hosts, "n3"):
            line = "blast send disk.img --to n[2-4] --ssh --as /dev/sda2 --start-timeout 2min"
            done = run(hosts, line, tmp_path, "1 of 3")
            assert not hosts.path("n3", "/dev/sda2").exists()
    finally:
        os.close(taken)
    assert done.returncode == 3, done.stderr
    assert "n3 does not have it: there is no device /dev/sda2" in done.stderr
    assert "n4 does not have it: /dev/sda2 is in use" in done.stderr and "is undefined" in done.stderr
    assert {name: disk_of(hosts, name) for name in NAMES} == before | {"n2": content + before["n2"][len(content) :]}


def test_what_does_not_fit_on_a_device_is_refused_before_the_first_byte(hosts: BareHosts) -> None:
    device, before = hosts.path("n2", "/dev/sda2"), disk_of(hosts, "n2")
    with pytest.raises(StoreError, match=f"{DISK + 1} bytes are more than the {DISK} of .*nothing was written"):
        DeviceTarget(device, DISK + 1)
    target = DeviceTarget(device, DISK)
    with pytest.raises(StoreError, match="is in use"):
        DeviceTarget(device, DISK)
    target.discard(resumable=False)
    assert disk_of(hosts, "n2") == before


def test_what_is_only_measured_goes_to_dev_null(hosts: BareHosts, tmp_path: Path) -> None:
    archive(tmp_path)
    line = "blast send - --to n2,n3,n4 --ssh --as /dev/null --ssh-window 2 --start-timeout 2min <myfile.tgz"
    run(hosts, line, tmp_path)
    for name in NAMES:
        assert hosts.path(name, "/dev/null").is_char_device()
