"""Encoding of a value: arrays, tensors and bytes without a copy; other values pickled once, as by Spark."""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeGuard

from blast_client.api.base_error import InvalidArgumentError


class ValueKind(StrEnum):
    """The kind of a value."""

    BYTES = "bytes"
    ARRAY = "array"
    TENSOR = "tensor"
    DICT = "dict"
    ORDERED = "ordered"
    PICKLED = "pickled"


@dataclass(frozen=True, slots=True)
class ParcelForm:
    """The form of a value, to restore it in executors; `keys`: order of the keys of a dict, which the file lacks."""

    kind: ValueKind
    keys: tuple[str, ...] = ()

    def value(self, received: Any) -> Any:
        """Restore the value from the result of `receive`."""
        match self.kind:
            case ValueKind.PICKLED:
                return pickle.loads(received)
            case ValueKind.ARRAY:
                import numpy as np

                # The view keeps the mapping but has the type of a plain array.
                return received.view(np.ndarray)
            case ValueKind.DICT:
                return {key: received[key] for key in self.keys}
            case ValueKind.ORDERED:
                return OrderedDict((key, received[key]) for key in self.keys)
        return received


@dataclass(frozen=True, slots=True)
class SparkParcel:
    """An encoded value: `data` for `blast_client.broadcast`; its file has the suffix `suffix` and `size` bytes."""

    data: object
    form: ParcelForm
    suffix: str
    size: int

    def pieces(self, step: int = 1 << 20) -> Iterator[memoryview]:
        """Yield the bytes of the file; each piece is valid until the next one."""
        from blast_client.objects.encoding import opened

        buffer, at = memoryview(bytearray(step)), 0
        with opened(self.data) as (source, _):
            while count := source.read(at, buffer):
                yield buffer[:count]
                at += count


def packed(value: object) -> SparkParcel:
    """Encode a value without a copy, if possible. Raises the exceptions of pickle for other values."""
    form = _form(value)
    if form.kind is not ValueKind.PICKLED:
        try:
            return _parcel(form, _contiguous(value))
        except InvalidArgumentError:
            # The formats do not support this element type.
            pass
    # pyspark's Broadcast uses the same protocol.
    return _parcel(ParcelForm(ValueKind.PICKLED), pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def shown(value: object) -> Any:
    """Return the value as every process sees it: bytes become a read-only view, since executors map them."""
    return memoryview(value).toreadonly() if _is_bytes(value) else value


def for_spark(value: object) -> object:
    """Return the value in a form that pickle supports."""
    return bytes(value) if isinstance(value, memoryview) else value


def _form(value: object) -> ParcelForm:
    """Return the form of a value; subclasses of arrays are pickled, since they have more than bytes."""
    if _is_bytes(value):
        return ParcelForm(ValueKind.BYTES)
    if _is_array(value):
        return ParcelForm(ValueKind.ARRAY)
    if _is_tensor(value):
        return ParcelForm(ValueKind.TENSOR)
    if (type(value) is dict or type(value) is OrderedDict) and value and all(type(key) is str for key in value):
        held = list(value.values())
        if all(map(_is_array, held)) or all(map(_is_tensor, held)):
            return ParcelForm(ValueKind.DICT if type(value) is dict else ValueKind.ORDERED, tuple(value))
    return ParcelForm(ValueKind.PICKLED)


def _is_bytes(value: object) -> TypeGuard[bytes | bytearray | memoryview]:
    if isinstance(value, memoryview):
        return value.format == "B" and value.ndim == 1
    return type(value) in (bytes, bytearray)


def _is_array(value: Any) -> bool:
    # If the value is an array, NumPy is loaded.
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) in (numpy.ndarray, numpy.memmap) and not value.dtype.hasobject


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and type(value) is torch.Tensor and not value.requires_grad


def _contiguous(value: Any) -> Any:
    """Return a contiguous value: the value itself, or one copy for all rounds."""
    if _is_array(value) and not (value.flags.c_contiguous or value.flags.f_contiguous):
        return value.copy()
    return value


def _parcel(form: ParcelForm, data: object) -> SparkParcel:
    from blast_client.objects.encoding import opened

    with opened(data) as (source, suffix):
        return SparkParcel(data, form, suffix, source.size or 0)
