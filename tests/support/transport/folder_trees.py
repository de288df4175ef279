"""Folders for tests: created from tables, and read with all their attributes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

Seen = dict[str, tuple[object, ...]]


def seen(folder: Path) -> Seen:
    """Return the type, mode, time and content (of a link: the target) of everything below a folder."""
    found: Seen = {"": (stat.S_IMODE(folder.stat().st_mode),)}
    for above, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(above, name)
            status = path.lstat()
            kind = stat.S_IFMT(status.st_mode)
            if kind == stat.S_IFLNK:
                value: tuple[object, ...] = ("link", str(path.readlink()))
            elif kind == stat.S_IFDIR:
                value = ("folder", stat.S_IMODE(status.st_mode), status.st_mtime_ns)
            else:
                value = ("file", stat.S_IMODE(status.st_mode), status.st_mtime_ns, path.read_bytes())
            found[str(path.relative_to(folder))] = value
    return found


def varied(folder: Path) -> Path:
    """Create files, folders and links of every kind that can be sent."""
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "列 車").mkdir()
    (folder / "a").write_bytes(b"hello\n" * 1000)
    (folder / "empty").touch()
    (folder / "sub" / "tool").write_bytes(os.urandom(300_000))
    (folder / "sub" / "tool").chmod(0o755)
    (folder / "a").chmod(0o640)
    (folder / "sub" / "up").symlink_to("../a")
    (folder / "down").symlink_to("sub")
    (folder / "dangling").symlink_to("sub/nothing")
    (folder / "sub" / "deep").chmod(0o500)
    os.utime(folder / "a", ns=(10**18, 10**18 + 7))
    folder.chmod(0o750)
    return folder


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())
