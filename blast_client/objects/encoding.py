"""An object as pieces of bytes, and the suffix of the file that they make at a receiver.

| given | file | made again as |
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

from blast_client.base_error import WrongArgument
from blast_client.objects.arrays import array_pieces
from blast_client.objects.folders import folder_pieces
from blast_client.objects.suffixes import ARRAY, BYTES, FOLDER, TENSORS
from blast_client.objects.tensors import tensor_pieces
from blast_transport.base.errors import sentence
from blast_transport.store.pieces import Piece, PiecesSource
from blast_transport.store.source import Source, opened_file


@contextmanager
def opened(data: object) -> Iterator[tuple[Source, str]]:
    """What is to be sent as a source, and the suffix of its file at the receivers.

    Raises WrongArgument for what cannot be sent, WrongInputError for a path where nothing can be read, and at the end
    SourceChangedError if files were written meanwhile.
    """
    try:
        folder = isinstance(data, PathLike) and Path(data).is_dir()
        pieces, suffix = _pieces(data, folder)
    except WrongArgument:
        raise
    except (OSError, ValueError) as error:
        raise WrongArgument(f"what is to be sent cannot be read: {sentence(error)}") from error
    if pieces is None:
        with opened_file(Path(data)) as file:  # type: ignore[arg-type]
            yield file, suffix
            file.check_unchanged()
        return
    source = PiecesSource(pieces)
    yield source, suffix
    source.check_unchanged()


def _pieces(data: object, folder: bool) -> tuple[Sequence[Piece] | None, str]:
    """None: it is a file of its own."""
    if isinstance(data, PathLike):
        return (folder_pieces(Path(data)), FOLDER) if folder else (None, "")
    return _in_memory(data)


def _in_memory(data: Any) -> tuple[Sequence[Piece], str]:
    # Whoever has such an object has loaded its library.
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(data, torch.Tensor):
        return tensor_pieces(data), TENSORS
    if numpy is not None and isinstance(data, numpy.ndarray):
        return array_pieces(data), ARRAY
    if isinstance(data, Mapping):
        return tensor_pieces(data), TENSORS
    if numpy is not None and isinstance(data, numpy.generic):
        # Its bytes would come without their type.
        raise WrongArgument(f"a {type(data).__name__} of NumPy is one value: give numpy.asarray(it)")
    try:
        return [_flat(memoryview(data))], BYTES
    except TypeError:
        raise WrongArgument(_cannot_be_sent(data)) from None


def _flat(view: memoryview) -> memoryview:
    """The same bytes in one dimension; copied only where they do not lie one after the other."""
    if not view.nbytes:
        return memoryview(b"")
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def _cannot_be_sent(data: object) -> str:
    if isinstance(data, str):
        return "a str may be a path or a text: give a Path, or bytes (text.encode())"
    return (
        f"a {type(data).__name__} cannot be sent as it lies in memory: give bytes, a Path, a NumPy array, a tensor or a"
        " dict of those (anything else as pickle.dumps(it), if its receivers trust you)"
    )
