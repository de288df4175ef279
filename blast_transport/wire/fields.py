"""JSON bodies of messages that occur once a session: readable in a capture, and open to new optional fields.

A message is a dataclass or a record; its annotations define the type of each field. Bytes travel as hexadecimal, tuples
as lists. The parameters of a transport are a dataclass of their own, and in a message an object that only that
transport interprets. A field called `reason` is text for people and is sanitized.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, asdict, fields
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, TypeVar, Union, get_args, get_origin, get_type_hints

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.wire.reasons import safe_reason

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Message = TypeVar("Message", bound="DataclassInstance | FrozenRecord")

Parameters = dict[str, object]
"""JSON object that the message itself does not interpret."""


def to_json(message: DataclassInstance | FrozenRecord) -> bytes:
    """Encode the message's fields as the body of a frame."""
    values = message.as_dict() if isinstance(message, FrozenRecord) else asdict(message)
    return json.dumps(values, default=_plain, separators=(",", ":")).encode()


def from_json(kind: type[Message], body: bytes) -> Message:
    """Decode a message; ignore unknown fields. Raise RemoteProtocolError if it is invalid."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        raise RemoteProtocolError(f"{kind.__name__} is not JSON") from None
    if not isinstance(values, dict):
        raise RemoteProtocolError(f"{kind.__name__} is not a JSON object")
    return from_parameters(kind, values)


def to_parameters(own: DataclassInstance) -> Parameters:
    """Return the fields of a dataclass as they travel within a message."""
    parameters: Parameters = json.loads(to_json(own))
    return parameters


def from_parameters(kind: type[Message], values: Parameters) -> Message:
    """Decode a dataclass from the fields of a message; ignore unknown fields.

    Raises RemoteProtocolError if a field is invalid.
    """
    found = {}
    for name, annotation, required in _fields(kind):  # type: ignore[arg-type] # mypy takes no class of a union for hashable
        if name in values:
            value = _value(values[name], annotation, f"{kind.__name__}.{name}")
            found[name] = safe_reason(value) if name == "reason" and isinstance(value, str) else value
        elif required:
            raise RemoteProtocolError(f"{kind.__name__} has no {name}")
    return kind(**found)


@cache
def _fields(kind: type[DataclassInstance | FrozenRecord]) -> list[tuple[str, object, bool]]:
    hints = get_type_hints(kind)
    if issubclass(kind, FrozenRecord):
        return [(name, hints[name], name not in kind.optional()) for name in kind.__match_args__]
    return [
        (field.name, hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    ]


def _value(value: object, annotation: object, where: str) -> object:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        if value is None and type(None) in arguments:
            return None
        return _value(value, next(part for part in arguments if part is not type(None)), where)
    if annotation == Parameters and isinstance(value, dict):
        return value
    if origin is tuple and isinstance(value, list):
        return _tuple(value, arguments, where)
    if annotation is bytes and isinstance(value, str):
        try:
            return bytes.fromhex(value)
        except ValueError:
            raise RemoteProtocolError(f"{where} is not hexadecimal") from None
    if annotation is float and (type(value) is int or type(value) is float):
        return _finite(value, where)
    # bool is a subclass of int in Python, but not in the protocol.
    if origin is None and type(value) is annotation:
        return value
    raise RemoteProtocolError(f"{where} has the wrong type")


def _finite(value: float, where: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    # Python's JSON accepts NaN and Infinity, which no computation here can handle.
    if not math.isfinite(number):
        raise RemoteProtocolError(f"{where} is not a finite number")
    return number


def _tuple(values: list[object], arguments: tuple[object, ...], where: str) -> tuple[object, ...]:
    if arguments[-1] is Ellipsis:
        return tuple(_value(value, arguments[0], where) for value in values)
    if len(values) != len(arguments):
        raise RemoteProtocolError(f"{where} has {len(values)} parts instead of {len(arguments)}")
    return tuple(_value(value, part, where) for value, part in zip(values, arguments, strict=True))


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no JSON form")
