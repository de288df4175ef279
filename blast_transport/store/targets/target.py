"""Where a receiver's bytes go. A target takes blocks, and makes the whole good or leaves nothing that looks whole."""

from __future__ import annotations

from typing import Protocol

Buffer = bytes | bytearray | memoryview


class Target(Protocol):
    """Target of received data: `descriptor` is the regular file, if any; `place` describes the target in messages.

    A target that is `in_order` accepts blocks only one after the other. All methods raise StoreError.
    """

    descriptor: int | None
    in_order: bool
    place: str

    def write(self, offset: int, *pieces: Buffer) -> None:
        """Write the pieces one after the other at `offset`. May wait for a slow target."""

    def read(self, offset: int, view: memoryview) -> int:
        """Fill `view` with written data at `offset`. Raise ForgottenError for data that is not kept."""

    def commit(self, size: int, *, fsync: bool) -> bool | None:
        """Complete the target after all `size` bytes were written and verified. May wait.

        Return whether the data survives a power loss, as it does with `fsync`; None if this is unknown.
        """

    def discard(self, *, resumable: bool) -> None:
        """Remove everything except the remains that a later session can resume. No effect after `commit`."""
