"""Named tensors as .safetensors files: the length of a JSON header, the header, and the bytes of all tensors.

The format is that of Hugging Face (https://github.com/huggingface/safetensors#format). Its library copies tensors that
it writes and NumPy arrays that it reads; this module sends and maps them without a copy.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from blast_base.extras import NotInstalledError, require
from blast_base.json_types import JsonObject
from blast_client.api.base_error import InvalidArgumentError
from blast_client.objects.arrays import bytes_of
from blast_client.objects.not_readable import UnreadableObjectError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

TORCH, NUMPY = "torch", "numpy"

_ONE = "tensor"
"""Name of a tensor that was not sent in a dict; the metadata then has `_SINGLE`."""
_METADATA, _LIBRARY, _SINGLE = "__metadata__", "blast.made_with", "blast.single"
_LENGTH = struct.Struct("<Q")
_LONGEST_HEADER = 100_000_000
_ALIGNMENT = 8
_MAX_DIMENSIONS, _MAX_NUMBER = 64, 2**63 - 1
"""Limits of NumPy and PyTorch. Without them the product of the dimensions of a large header would take minutes."""


@dataclass(frozen=True, slots=True)
class _Type:
    """An element type: `size` in bytes, and its names in both libraries, empty if one does not have it."""

    size: int
    torch: str
    numpy: str


_TYPES = {
    "BOOL": _Type(1, "bool", "bool"),
    "U8": _Type(1, "uint8", "uint8"),
    "I8": _Type(1, "int8", "int8"),
    "F8_E4M3": _Type(1, "float8_e4m3fn", ""),
    "F8_E5M2": _Type(1, "float8_e5m2", ""),
    "U16": _Type(2, "uint16", "uint16"),
    "I16": _Type(2, "int16", "int16"),
    "F16": _Type(2, "float16", "float16"),
    "BF16": _Type(2, "bfloat16", ""),
    "U32": _Type(4, "uint32", "uint32"),
    "I32": _Type(4, "int32", "int32"),
    "F32": _Type(4, "float32", "float32"),
    "U64": _Type(8, "uint64", "uint64"),
    "I64": _Type(8, "int64", "int64"),
    "F64": _Type(8, "float64", "float64"),
    "C64": _Type(8, "complex64", "complex64"),
}
_OF_TORCH = {f"torch.{known.torch}": name for name, known in _TYPES.items()}
_OF_NUMPY = {known.numpy: name for name, known in _TYPES.items() if known.numpy}


# ---------------------------------------------------------------------------------------------------- encoding


@dataclass(frozen=True, slots=True)
class _Given:
    """A tensor to write: name, name of its type, shape and bytes."""

    name: str
    type: str
    shape: tuple[int, ...]
    data: memoryview


def tensor_pieces(data: object) -> list[memoryview]:
    """Return the file of a tensor, or of a dict of tensors or arrays, in pieces.

    Raises InvalidArgumentError for a value that is not a tensor, is on another device, or has an unsupported type.
    """
    named = dict(data) if isinstance(data, Mapping) else {_ONE: data}
    # Descending element size aligns every tensor to its element size.
    given = sorted((_given(name, value) for name, value in named.items()), key=lambda one: -_TYPES[one.type].size)
    torch = sys.modules.get("torch")
    of_torch = {torch is not None and isinstance(value, torch.Tensor) for value in named.values()}
    if len(of_torch) > 1:
        raise InvalidArgumentError(
            "a dict must hold either tensors or NumPy arrays: convert arrays with torch.from_numpy"
        )
    metadata = {_LIBRARY: TORCH if True in of_torch else NUMPY}
    if not isinstance(data, Mapping):
        metadata[_SINGLE] = "yes"
    return [memoryview(_header(given, metadata)), *(one.data for one in given)]


def _header(given: list[_Given], metadata: dict[str, str]) -> bytes:
    entries: dict[str, object] = {_METADATA: metadata}
    end = 0
    for one in given:
        begin, end = end, end + one.data.nbytes
        entries[one.name] = {"dtype": one.type, "shape": list(one.shape), "data_offsets": [begin, end]}
    text = json.dumps(entries, ensure_ascii=False).encode()
    text += b" " * (-(_LENGTH.size + len(text)) % _ALIGNMENT)
    if len(text) > _LONGEST_HEADER:
        raise InvalidArgumentError(f"the names of {len(given)} tensors exceed {_LONGEST_HEADER} bytes: shorten them")
    return _LENGTH.pack(len(text)) + text


def _given(name: object, value: object) -> _Given:
    if not isinstance(name, str) or name == _METADATA:
        raise InvalidArgumentError(f"the name of a tensor must be a str other than {_METADATA!r}, not {name!r}")
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_torch(name, value, torch)
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _of_numpy(name, value, numpy)
    raise InvalidArgumentError(
        f"{name!r} is a {type(value).__name__}: a dict may hold tensors or NumPy arrays, by name"
    )


def _of_torch(name: str, tensor: torch.Tensor, torch: ModuleType) -> _Given:
    if tensor.device.type != "cpu":
        raise InvalidArgumentError(f"the tensor {name!r} is on {tensor.device}: send tensor.cpu()")
    if tensor.layout is not torch.strided or tensor.is_quantized or str(tensor.dtype) not in _OF_TORCH:
        raise InvalidArgumentError(
            f"safetensors does not support the tensor {name!r} ({tensor.dtype}, {tensor.layout})"
        )
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    data = memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else memoryview(b"")
    return _Given(name, _OF_TORCH[str(tensor.dtype)], tuple(tensor.shape), data)


def _of_numpy(name: str, array: NDArray[np.generic], numpy: ModuleType) -> _Given:
    known = _OF_NUMPY.get(array.dtype.name)
    if known is None or isinstance(array, numpy.ma.MaskedArray):
        raise InvalidArgumentError(
            f"safetensors does not support the array {name!r} of {array.dtype}: send it by itself"
        )
    # The format requires little-endian elements in C order.
    array = numpy.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
    return _Given(name, known, array.shape, bytes_of(array))


# -------------------------------------------------------------------------------------------------- decoding


def mapped_tensors(path: Path, library: str | None = None) -> object:
    """Map the tensor or tensors of a file, copy-on-write.

    `library`: "torch" or "numpy"; None: that of the sender, or torch for a file of another tool. Raises
    UnreadableObjectError, NotInstalledError, OSError.
    """
    with path.open("rb") as file:
        try:
            # Frameworks expect writable memory; a private mapping hides writes from other processes.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except ValueError:
            raise UnreadableObjectError(path, "tensors", "the file is empty") from None
    try:
        entries, begin = _entries(mapped)
        metadata = entries.pop(_METADATA, {})
        make = _maker(library or metadata.get(_LIBRARY) or TORCH)
        tensors = {
            name: make(mapped, begin, _checked(name, entry, len(mapped) - begin)) for name, entry in entries.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableObjectError(path, "tensors", str(error)) from error
    return tensors[_ONE] if _SINGLE in metadata and _ONE in tensors else tensors


@dataclass(frozen=True, slots=True)
class _FoundTensors:
    type: _Type
    shape: tuple[int, ...]
    begin: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)


def _entries(mapped: mmap.mmap) -> tuple[JsonObject, int]:
    """Return the header and the offset of the data. Raises ValueError."""
    if len(mapped) < _LENGTH.size:
        raise ValueError("the header is truncated")
    (length,) = _LENGTH.unpack(mapped[: _LENGTH.size])
    begin = _LENGTH.size + length
    if length > _LONGEST_HEADER or begin > len(mapped):
        raise ValueError(f"the header cannot have {length} bytes")
    entries = json.loads(mapped[_LENGTH.size : begin])
    if not isinstance(entries, dict) or not isinstance(entries.get(_METADATA, {}), dict):
        raise ValueError("the header is not an object of tensors")
    return entries, begin


def _checked(name: str, entry: JsonObject, held: int) -> _FoundTensors:
    """Validate an entry of the header. Raises ValueError, KeyError, TypeError."""
    known = _TYPES.get(entry["dtype"])
    if known is None:
        raise ValueError(f"{name!r} has the unknown type {entry['dtype']!r}")
    shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
    if len(shape) > _MAX_DIMENSIONS:
        raise ValueError(f"{name!r} has {len(shape)} dimensions, more than {_MAX_DIMENSIONS}")
    if not all(type(number) is int and 0 <= number <= _MAX_NUMBER for number in (*shape, begin, end)):
        raise ValueError(f"{name!r} has an invalid shape or offset")
    if end > held or end - begin != math.prod(shape) * known.size:
        raise ValueError(f"the offsets of {name!r} do not match the file or its shape")
    return _FoundTensors(known, shape, begin)


def _maker(library: str) -> Callable[[mmap.mmap, int, _FoundTensors], object]:
    if library == TORCH:
        if find_spec(TORCH) is None:
            raise NotInstalledError("PyTorch is not installed: install it, or receive(…, library='numpy')")
        return _as_torch
    require("arrays", "numpy")
    return _as_numpy


def _as_torch(mapped: mmap.mmap, begin: int, found: _FoundTensors) -> torch.Tensor:
    import torch

    dtype = getattr(torch, found.type.torch, None)
    if dtype is None:
        raise ValueError(f"this version of PyTorch has no {found.type.torch}")
    if not found.count:
        return torch.empty(found.shape, dtype=dtype)
    return torch.frombuffer(mapped, dtype=dtype, count=found.count, offset=begin + found.begin).reshape(found.shape)


def _as_numpy(mapped: mmap.mmap, begin: int, found: _FoundTensors) -> NDArray[np.generic]:
    import numpy as np

    if not found.type.numpy:
        raise ValueError(f"NumPy has no {found.type.torch}: receive it with PyTorch")
    dtype = np.dtype(found.type.numpy).newbyteorder("<")
    return np.frombuffer(mapped, dtype, found.count, begin + found.begin).reshape(found.shape)
