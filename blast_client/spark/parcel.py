"""A value as it travels: arrays, tensors and bytes as they lie in memory; anything else pickled once, as by Spark."""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeGuard

from blast_client.base_error import WrongArgument


class Kind(StrEnum):
    """What was given."""

    BYTES = "bytes"
    ARRAY = "array"
    TENSOR = "tensor"
    DICT = "dict"
    ORDERED = "ordered"
    PICKLED = "pickled"


@dataclass(frozen=True, slots=True)
class Form:
    """How a value is made again of what has come; `keys` of a dict in their order, which no file keeps."""

    kind: Kind
    keys: tuple[str, ...] = ()

    def value(self, came: Any) -> Any:
        """The value, of what `receive` gives."""
        match self.kind:
            case Kind.PICKLED:
                return pickle.loads(came)
            case Kind.ARRAY:
                import numpy as np

                # What is mapped stays mapped; to the user it is an array as any other.
                return came.view(np.ndarray)
            case Kind.DICT:
                return {key: came[key] for key in self.keys}
            case Kind.ORDERED:
                return OrderedDict((key, came[key]) for key in self.keys)
        return came


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is sent: `data` that `blast_client.broadcast` takes, whose file ends in `suffix` and has `size` bytes."""

    data: object
    form: Form
    suffix: str
    size: int

    def pieces(self, step: int = 1 << 20) -> Iterator[memoryview]:
        """The bytes of its file; each piece is good until the next is asked for."""
        from blast_client.objects.encoding import opened

        buffer, at = memoryview(bytearray(step)), 0
        with opened(self.data) as (source, _):
            while count := source.read(at, buffer):
                yield buffer[:count]
                at += count


def packed(value: object) -> Parcel:
    """The value, ready to be sent from where it lies. Raises what pickle does for what it cannot write."""
    form = _form(value)
    if form.kind is not Kind.PICKLED:
        try:
            return _parcel(form, _contiguous(value))
        except WrongArgument:
            # A type of elements that the formats do not know.
            pass
    # As pyspark's own Broadcast does it.
    return _parcel(Form(Kind.PICKLED), pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def shown(value: object) -> Any:
    """The value as every process sees it: bytes, which are mapped where they have come to, as a read-only view."""
    return memoryview(value).toreadonly() if _is_bytes(value) else value


def for_spark(value: object) -> object:
    """The value as pickle takes it."""
    return bytes(value) if isinstance(value, memoryview) else value


def _form(value: object) -> Form:
    """Only what comes out as it went in: a subclass of an array is more than its bytes."""
    if _is_bytes(value):
        return Form(Kind.BYTES)
    if _is_array(value):
        return Form(Kind.ARRAY)
    if _is_tensor(value):
        return Form(Kind.TENSOR)
    if (type(value) is dict or type(value) is OrderedDict) and value and all(type(key) is str for key in value):
        held = list(value.values())
        if all(map(_is_array, held)) or all(map(_is_tensor, held)):
            return Form(Kind.DICT if type(value) is dict else Kind.ORDERED, tuple(value))
    return Form(Kind.PICKLED)


def _is_bytes(value: object) -> TypeGuard[bytes | bytearray | memoryview]:
    if isinstance(value, memoryview):
        return value.format == "B" and value.ndim == 1
    return type(value) in (bytes, bytearray)


def _is_array(value: Any) -> bool:
    # Who has an array has loaded NumPy.
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) in (numpy.ndarray, numpy.memmap) and not value.dtype.hasobject


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and type(value) is torch.Tensor and not value.requires_grad


def _contiguous(value: Any) -> Any:
    """The value where it lies, or one copy that serves however often it is sent."""
    if _is_array(value) and not (value.flags.c_contiguous or value.flags.f_contiguous):
        return value.copy()
    return value


def _parcel(form: Form, data: object) -> Parcel:
    from blast_client.objects.encoding import opened

    with opened(data) as (source, suffix):
        return Parcel(data, form, suffix, source.size or 0)
