"""Devices as targets. Tests with real block devices, which need root, are in test_send_bare_hosts.py."""

from __future__ import annotations

import errno
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from blast_transport.agent.permissions import AllowedDevice, AllowedFile, Permissions
from blast_transport.agent.settings import DeviceSection, FolderSection, LimitsSection, Settings, parse
from blast_transport.agent.targets import Targets
from blast_transport.base.errors import ForgottenError, NotAllowedError, SettingsError, StoreError
from blast_transport.store.targets import device_target
from blast_transport.store.targets.block_device import mount_points, mounts_of
from blast_transport.store.targets.device_target import DeviceTarget
from blast_transport.store.targets.file_target import FileRules
from blast_transport.wire.messages import Hello

NULL, FULL = Path("/dev/null"), Path("/dev/full")
MOUNTS = r"""22 27 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw
27 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
90 27 8:3 /part /srv/a\040b\134c rw shared:9 master:1 - ext4 /dev/sda3 rw
"""


@pytest.fixture
def block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of 1000 bytes that passes for an unmounted block device."""
    path = tmp_path / "disk"
    path.write_bytes(b"o" * 1000)
    monkeypatch.setattr(device_target, "is_device", lambda mode: True)
    monkeypatch.setattr(device_target, "mounts_of", lambda device: [])
    return path


def test_mount_points_are_found_by_device() -> None:
    assert mount_points(MOUNTS, {"8:2"}) == ["/"]
    assert mount_points(MOUNTS, {"8:0", "8:3"}) == [r"/srv/a b\c"]
    assert mount_points(MOUNTS, {"8:20", "0:2"}) == []


def test_mounts_of_root_device_include_root() -> None:
    assert "/" in mounts_of(Path("/").stat().st_dev)


def test_device_keeps_old_content_behind_written_data(block: Path) -> None:
    target = DeviceTarget(block, 300)
    assert not target.in_order and target.descriptor is None
    target.write(200, b"b" * 60, b"c" * 40)
    target.write(0, b"a" * 200)
    view = memoryview(bytearray(250))
    assert target.read(100, view) == 250 and bytes(view[:201]) == b"a" * 100 + b"b" * 60 + b"c" * 40 + b"o"
    assert target.commit(300, fsync=True) is True
    target.discard(resumable=True)
    assert block.read_bytes() == b"a" * 200 + b"b" * 60 + b"c" * 40 + b"o" * 700


def test_too_large_file_is_rejected_before_first_write_to_device(block: Path) -> None:
    for size, limit in ((1001, None), (101, 100)):
        with pytest.raises(StoreError, match=f"{size} bytes are more than .*nothing was written"):
            DeviceTarget(block, size, limit)
    assert block.read_bytes() == b"o" * 1000


def test_too_large_stream_is_stopped_and_device_reported_undefined(
    block: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = DeviceTarget(block, None)
    target.write(0, bytes(900))
    with pytest.raises(StoreError, match=r"more bytes came than the 1000 .* and what is on it is undefined"):
        target.write(900, bytes(101))
    with caplog.at_level(logging.WARNING):
        target.discard(resumable=True)
    assert f"{block} is incomplete" in caplog.text


def test_discarding_unwritten_device_leaves_it_unchanged(block: Path, caplog: pytest.LogCaptureFixture) -> None:
    DeviceTarget(block, 10).discard(resumable=False)
    assert block.read_bytes() == b"o" * 1000 and not caplog.text


def test_device_that_is_mounted_or_in_use_is_rejected(block: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_target, "mounts_of", lambda device: ["/srv"])
    with pytest.raises(StoreError, match="is mounted at /srv: unmount it first; nothing was written"):
        DeviceTarget(block, 10)
    monkeypatch.setattr(device_target, "mounts_of", lambda device: [])
    opened = os.open

    def busy(path: Path, flags: int) -> int:
        assert flags & os.O_EXCL and not flags & (os.O_CREAT | os.O_TRUNC)
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(device_target.os, "open", busy)
    with pytest.raises(StoreError, match="is in use"):
        DeviceTarget(block, 10)
    monkeypatch.setattr(device_target.os, "open", opened)


def test_path_that_is_no_device_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, sentence in (
        (tmp_path / "file", "is no device"),
        (tmp_path, "is no device"),
        (tmp_path / "none", "No such"),
    ):
        with pytest.raises(StoreError, match=sentence):
            DeviceTarget(path, 1)
    assert not (tmp_path / "none").exists()


def test_character_device_is_written_in_order_and_not_read() -> None:
    target = DeviceTarget(NULL, None)
    assert target.in_order
    target.write(0, bytes(100))
    with pytest.raises(ForgottenError):
        target.read(0, memoryview(bytearray(1)))
    assert target.commit(100, fsync=True) is None
    with pytest.raises(StoreError, match="No space left"):
        DeviceTarget(FULL, None).write(0, b"x")


# --------------------------------------------------------------------------------------------- what an agent allows


def test_device_is_allowed_only_by_its_name(tmp_path: Path) -> None:
    settings = Settings(folder=(FolderSection("in", tmp_path),), device=(DeviceSection("disk", NULL),))
    permissions = Permissions(settings)
    assert permissions.allow("file", "any/../name", "disk") == AllowedDevice(NULL)
    for folder in ("", "in"):
        allowed = permissions.allow("file", "disk", folder)
        assert isinstance(allowed, AllowedFile)
        allowed.close()
    with pytest.raises(NotAllowedError):
        permissions.allow("file", "x", "/dev/null")
    alone = Permissions(Settings(device=(DeviceSection("disk", NULL),)))
    with pytest.raises(NotAllowedError, match="writes no files"):
        alone.allow("file", "disk")
    with pytest.raises(NotAllowedError):
        alone.allow("command", "disk")


def test_size_limits_of_agent_apply_to_devices_and_memory() -> None:
    settings = Settings(device=(DeviceSection("disk", NULL),))
    make = Targets(Permissions(settings), FileRules(max_bytes=10))
    hello = Hello(1, 11, 100, 1, "sha256", "file", "x", "disk")
    with pytest.raises(StoreError, match="11 bytes are more than the 10"):
        make(hello)
    make = Targets(Permissions(Settings(limits=LimitsSection(memory_bytes=10))), FileRules())
    with pytest.raises(StoreError, match="11 bytes are more than the 10 that this agent keeps in memory"):
        make(replace(hello, kind="memory"))


def test_device_is_configured_by_name_and_path() -> None:
    table = '[[device]]\nname = "disk"\npath = "/dev/sdb"\n'
    assert parse(table).device == (DeviceSection("disk", Path("/dev/sdb")),)
    with pytest.raises(SettingsError, match="two folders have the name 'disk'"):
        parse(f'{table}[[folder]]\nname = "disk"\npath = "/srv"\n')
    with pytest.raises(SettingsError, match="absolute path"):
        parse('[[device]]\nname = "disk"\npath = "sdb"\n')
