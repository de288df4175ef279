"""Size and users of a block device, as the kernel reports them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_DEVICES = Path("/sys/dev/block")
_NUMBER, _MOUNT_POINT = 2, 4
"""Fields of a line of mountinfo, from 0 (proc_pid_mountinfo(5))."""


def size_of(descriptor: int) -> int:
    """Return the bytes of the open block device."""
    return os.lseek(descriptor, 0, os.SEEK_END)


def mounts_of(device: int) -> list[str]:
    """Return where a device (its st_rdev), or a partition of it, is mounted, as this process sees it."""
    return mount_points(_MOUNTS.read_text(errors="surrogateescape"), {_written(device), *_partitions(device)})


def mount_points(mounts: str, devices: set[str]) -> list[str]:
    """Return the mount points of these devices (MAJOR:MINOR) in a text like /proc/self/mountinfo."""
    lines = (line.split(" ") for line in mounts.splitlines())
    return [
        _plain(fields[_MOUNT_POINT]) for fields in lines if len(fields) > _MOUNT_POINT and fields[_NUMBER] in devices
    ]


def _written(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


def _partitions(device: int) -> list[str]:
    with suppress(OSError):
        parts = [part.parent for part in (_DEVICES / _written(device)).glob("*/partition")]
        return [(part / "dev").read_text().strip() for part in parts]
    return []


def _plain(escaped: str) -> str:
    """Decode the octal escapes that the kernel writes for white space and backslashes."""
    for character in " \t\n\\":
        escaped = escaped.replace(f"\\{ord(character):03o}", character)
    return escaped
