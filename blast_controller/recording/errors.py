"""What can be wrong with a recording. Each is one sentence that says what to do."""

from __future__ import annotations

from pathlib import Path


class RecordingFault(Exception):
    """A recording cannot be written, or read."""


class NoRecording(RecordingFault):
    """There is no such file, or it may not be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the recording {path} cannot be opened ({reason}): name the file of recording.file, whose folder must "
            "exist and which you must be allowed to use"
        )


class Damaged(RecordingFault):
    """The file is no whole recording."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is not a whole recording ({reason}): move it and its -wal file away, a new one is then begun; "
            "the journal is another file, and not concerned"
        )


class NewerRecording(RecordingFault):
    """A later release wrote the file."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"the recording {path} has format {found} and this release knows formats up to {known}: read it with the "
            "release that wrote it, or a later one"
        )


class InUse(RecordingFault):
    """Another process has the file."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the recording {path} is in use ({reason}): give every controller a file of its own")


class CannotKeep(RecordingFault):
    """The disk is full, or fails."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the recording {path} cannot be written or read ({reason}): make room, or check the disk")


class NothingRecorded(RecordingFault):
    """Nothing is recorded of the time that is asked for."""
