"""Faults of a recording, each with a message that has the cause and the remedy."""

from __future__ import annotations

from pathlib import Path


class RecordingError(Exception):
    """A recording cannot be written, or read."""


class MissingRecordingError(RecordingError):
    """There is no such file, or it may not be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the recording {path} cannot be opened ({reason}): check recording.file; its directory must exist, "
            "and you need read and write permission"
        )


class DamagedRecordingError(RecordingError):
    """The file is no whole recording."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the recording {path} is damaged ({reason}): move it and its -wal file away to begin a new one; the "
            "journal is a different file and not affected"
        )


class RecordingFormatError(RecordingError):
    """Another release wrote the file."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"the recording {path} has format {found} and this release reads format {known}: read it with the release "
            "that wrote it, or move it and its -wal file away to begin a new one"
        )


class RecordingInUseError(RecordingError):
    """Another process has the file."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the recording {path} is in use ({reason}): configure a different file for each controller")


class RecordingStorageError(RecordingError):
    """The disk is full, or fails."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the recording {path} cannot be read or written ({reason}): free space, or check the disk")


class NothingRecordedError(RecordingError):
    """Nothing was recorded at the requested time."""
