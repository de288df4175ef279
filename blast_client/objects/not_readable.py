"""The exception for received files that cannot be decoded."""

from __future__ import annotations

from pathlib import Path

from blast_client.api.base_error import BlastError


class UnreadableObjectError(BlastError):
    """A file was received completely but does not contain the object that its suffix indicates.

    Parameters
    ----------
    path : Path
        The file, also an attribute.
    kind : str
        Kind of the expected object, for the message.
    reason : str
        Cause, for the message.
    """

    def __init__(self, path: Path, kind: str, reason: str) -> None:
        super().__init__(f"{path} contains no readable {kind}: {reason}")
        self.path, self._kind, self._reason = path, kind, reason

    def __reduce__(self) -> tuple[type[UnreadableObjectError], tuple[Path, str, str]]:
        return UnreadableObjectError, (self.path, self._kind, self._reason)
