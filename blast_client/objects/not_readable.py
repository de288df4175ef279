"""What came is not what its name says."""

from __future__ import annotations

from pathlib import Path

from blast_client.base_error import BlastError


class NotReadable(BlastError):
    """A file is there, whole as it was sent, but it does not hold what its name promises."""

    def __init__(self, path: Path, what: str, reason: str) -> None:
        super().__init__(f"{path} holds no {what} that can be read: {reason}")
        self.path, self._what, self._reason = path, what, reason

    def __reduce__(self) -> tuple[type[NotReadable], tuple[Path, str, str]]:
        return NotReadable, (self.path, self._what, self._reason)
