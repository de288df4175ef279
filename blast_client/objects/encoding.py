"""Objects as pieces of bytes, and the suffix of the file at a receiver.

| object | file | received as |
|---|---|---|
| bytes, bytearray, memoryview, mmap, array | NAME.bytes | a read-only memoryview |
| a Path of a file | NAME | a Path |
| a Path of a folder | NAME.tar | the Path of a folder |
| NumPy array | NAME.npy | the array, mapped |
| PyTorch tensor; dict or `state_dict` of tensors, dict of NumPy arrays | NAME.safetensors | the same, mapped |
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from blast_client.api.base_error import InvalidArgumentError
from blast_client.objects.arrays import array_pieces
from blast_client.objects.folders import folder_pieces
from blast_client.objects.suffixes import ARRAY, BYTES, FOLDER, TENSORS
from blast_client.objects.tensors import tensor_pieces
from blast_transport.base.errors import sentence
from blast_transport.store.sources.pieces import Piece, PiecesSource
from blast_transport.store.sources.source import Source, opened_file


@contextmanager
def opened(data: object) -> Iterator[tuple[Source, str]]:
    """Open data as a source, and yield it with the suffix of its file at the receivers.

    Raises InvalidArgumentError for unsupported data, WrongInputError for an unreadable path, and on exit
    SourceChangedError if a file changed meanwhile.
    """
    try:
        folder = isinstance(data, PathLike) and Path(data).is_dir()
        pieces, suffix = _pieces(data, folder)
    except InvalidArgumentError:
        raise
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"cannot read the data: {sentence(error)}") from error
    if pieces is None:
        with opened_file(Path(data)) as file:  # type: ignore[arg-type]
            yield file, suffix
            file.check_unchanged()
        return
    source = PiecesSource(pieces)
    yield source, suffix
    source.check_unchanged()


def _pieces(data: object, folder: bool) -> tuple[Sequence[Piece] | None, str]:
    """Return the pieces (None for a file) and the suffix."""
    if isinstance(data, PathLike):
        return (folder_pieces(Path(data)), FOLDER) if folder else (None, "")
    return _in_memory(data)


def _in_memory(data: Any) -> tuple[Sequence[Piece], str]:
    # If the data is an object of a library, that library is loaded.
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(data, torch.Tensor):
        return tensor_pieces(data), TENSORS
    if numpy is not None and isinstance(data, numpy.ndarray):
        return array_pieces(data), ARRAY
    if isinstance(data, Mapping):
        return tensor_pieces(data), TENSORS
    if numpy is not None and isinstance(data, numpy.generic):
        # Its buffer has no type.
        raise InvalidArgumentError(f"a {type(data).__name__} of NumPy is a scalar: send numpy.asarray(it)")
    try:
        return [_flat(memoryview(data))], BYTES
    except TypeError:
        raise InvalidArgumentError(_cannot_be_sent(data)) from None


def _flat(view: memoryview) -> memoryview:
    """Return the bytes in one dimension; copy them only if they are not contiguous."""
    if not view.nbytes:
        return memoryview(b"")
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def _cannot_be_sent(data: object) -> str:
    if isinstance(data, str):
        return "a str is ambiguous: send a Path, or bytes (text.encode())"
    return (
        f"cannot send a {type(data).__name__}: send bytes, a Path, a NumPy array, a tensor or a dict of arrays or "
        "tensors (other objects as pickle.dumps(it), if the receivers trust you)"
    )
