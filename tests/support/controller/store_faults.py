"""Delays and failures before a receiver's file is written, by any engine, for tests of slow, stuck and broken disks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from blast_transport.store.blocks.compiled_store import CompiledStore
from blast_transport.store.targets.file_target import FileTarget

Before = Callable[[str, int, int], None]
"""Called with the file's path, and where how many bytes are to be written. Raises OSError."""


def before_writes(monkeypatch: pytest.MonkeyPatch, happens: Before) -> None:
    """Call a function before every write to a receiver's file in this process, also in compiled code."""
    write, begin = FileTarget.write, CompiledStore.__init__

    def by_python(target: FileTarget, offset: int, *pieces: Any) -> None:
        happens(target.place, offset, sum(map(len, pieces)))
        write(target, offset, *pieces)

    def compiled(store: CompiledStore, *arguments: Any) -> None:
        begin(store, *arguments)
        store.native.before_writes(partial(happens, store.target.place))

    monkeypatch.setattr(FileTarget, "write", by_python)
    monkeypatch.setattr(CompiledStore, "__init__", compiled)
