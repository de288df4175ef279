"""What happens before a receiver's file is written, by whichever engine: for tests of slow, stuck and broken disks.

What writes in the same call that receives it is passed by: the compiled store is given rows, as when it is slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from blast_transport.carriers.pipeline.connections.compiled_pump import CompiledIntake
from blast_transport.store.compiled_store import CompiledStore
from blast_transport.store.file_target import FileTarget

Before = Callable[[str, int, int], None]
"""Called with the file's path, and where how many bytes are to be written. Raises OSError."""


def before_writes(monkeypatch: pytest.MonkeyPatch, happens: Before) -> None:
    """This happens before every write into a receiver's file in this process."""
    write, put_all, put_row = FileTarget.write, CompiledStore.put_all, CompiledStore.put_row

    def by_python(target: FileTarget, offset: int, *pieces: Any) -> None:
        happens(target.place, offset, sum(map(len, pieces)))
        write(target, offset, *pieces)

    def blocks(store: CompiledStore, first: int, row: Sequence[Any]) -> int:
        store._do(happens, store.target.place, store.layout.offset(first), sum(map(len, row)))
        return put_all(store, first, row)

    def a_row(store: CompiledStore, first: int, data: memoryview) -> None:
        store._do(happens, store.target.place, store.layout.offset(first), len(data))
        put_row(store, first, data)

    monkeypatch.setattr(FileTarget, "write", by_python)
    monkeypatch.setattr(CompiledStore, "put_all", blocks)
    monkeypatch.setattr(CompiledStore, "put_row", a_row)
    monkeypatch.setattr(CompiledIntake, "frames", None)
