"""Where a path that a sender names leads on this host: to a file in a folder, or to a device that is overwritten."""

from __future__ import annotations

import stat
from pathlib import Path

from blast_transport.base.errors import SettingsError, sentence
from blast_transport.store.targets.device_target import is_device

TARGET = "target"
"""Folder name that the sender uses for it."""

_DEVICES = Path("/dev")


def tables_of(path: str) -> dict[str, list[dict[str, object]]]:
    """Return the tables of a configuration that permits only this path. Raise SettingsError."""
    place = Path(path)
    if not place.is_absolute() or not place.name:
        raise SettingsError(f"{path!r} is no absolute path of a file or a device")
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        mode = None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be looked at: {sentence(error)}") from error
    if mode is not None and is_device(mode):
        return {"device": [{"name": TARGET, "path": path}]}
    if mode is not None and not stat.S_ISREG(mode):
        problem = "a folder: end with the name of the file" if stat.S_ISDIR(mode) else "neither a file nor a device"
        raise SettingsError(f"{path} is {problem}")
    if mode is None and _among_devices(place.parent):
        raise SettingsError(f"there is no device {path}")
    return {"folder": [{"name": TARGET, "path": str(place.parent)}]}


def _among_devices(folder: Path) -> bool:
    """Return whether the path is in /dev, where a file instead of a missing device would fill the memory."""
    try:
        return folder.stat().st_dev == _DEVICES.stat().st_dev
    except OSError:
        return False
