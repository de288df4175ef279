"""Where a receiver's bytes go. A target takes blocks, and makes the whole good or leaves nothing that looks whole."""

from __future__ import annotations

from typing import Protocol

Buffer = bytes | bytearray | memoryview


class Target(Protocol):
    """`descriptor` is the regular file that is being written, if there is one; `place` says where the data ends up.

    A target that is `in_order` takes blocks one after the other only. All methods raise StoreError.
    """

    descriptor: int | None
    in_order: bool
    place: str

    def write(self, offset: int, *pieces: Buffer) -> None:
        """Take bytes, one piece behind the other, that belong at `offset`. May wait for whoever takes them."""

    def read(self, offset: int, view: memoryview) -> int:
        """Fill `view` with what was written at `offset`. Raises ForgottenError for what is not kept."""

    def commit(self, size: int, *, fsync: bool) -> bool | None:
        """All `size` bytes were written and are right: make the whole good. May wait.

        Whether it now outlives a loss of power, as it does with `fsync`; None where nobody here can know.
        """

    def discard(self, *, resumable: bool) -> None:
        """Leave nothing behind, but what a later session may go on from. No effect after `commit`."""
