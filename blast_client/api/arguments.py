"""Validation of arguments before a call.

This module checks the types of the interface by the generated description of each call. The controller checks the
content of requests.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence

from thrift.Thrift import TType

from blast_api import ttypes
from blast_client.api.base_error import InvalidArgumentError

MAX_BYTES = (1 << 20) - (1 << 16)
"""Maximum text in one call; a frame has at most 1 MiB."""

_REQUIRED: Mapping[type, Sequence[str]] = {ttypes.MulticastRequest: ("key", "sender", "receivers", "bytes")}
_OPTIONAL = {"drain": "enable"}
_WHOLE = {TType.I32: 31, TType.I64: 63}
_EXAMPLE = 'MulticastRequest("iteration-1", "r1h1", ["r2h1", "r3h1"], 300_000_000)'


def check_call(method: Callable[..., object], arguments: Sequence[object]) -> None:
    """Raise InvalidArgumentError if the arguments of a call do not have the types of the interface."""
    # The generated module of the interface also has the structs of its arguments.
    name, described = method.__name__, vars(sys.modules[method.__module__])
    text = 0
    for spec, value in zip(filter(None, described[f"{name}_args"].thrift_spec), arguments, strict=False):
        if value is None and _OPTIONAL.get(name) != spec[2]:
            raise InvalidArgumentError(f"{_named(spec[2])} of {name} must not be None")
        text += _size(_named(spec[2]), spec[1], spec[3], value)
    if text > MAX_BYTES:
        raise InvalidArgumentError(f"the names have {text} bytes, but a call holds {MAX_BYTES}: give fewer names")


def check_seconds(seconds: object) -> None:
    """Raise InvalidArgumentError if a timeout is not a finite, non-negative number of seconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise InvalidArgumentError(f"the timeout must be a finite number of seconds, at least 0, not {seconds!r}")


def _size(name: str, kind: int, detail: object, value: object) -> int:
    """Return the number of bytes of text in a value of a type; 0 for None. Raises InvalidArgumentError."""
    if value is None:
        return 0
    match kind, detail:
        case TType.STRING, _:
            return _text(name, value)
        case TType.LIST, (int(inner), inner_detail, _):
            return sum(_size(f"each of {name}", inner, inner_detail, one) for one in _list(name, value))
        case TType.STRUCT, [type() as struct, _]:
            return _struct(name, struct, value)
        case TType.BOOL, _ if not isinstance(value, bool):
            raise InvalidArgumentError(f"{name} must be True or False, not {_shown(value)}")
        case ((TType.I32 | TType.I64), _):
            _number(name, _WHOLE[kind], value)
    return 0


def _text(name: str, value: object) -> int:
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be a text, not {_shown(value)}")
    try:
        return len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{name} must be text without surrogates, for UTF-8, not {_shown(value)}") from error


def _list(name: str, value: object) -> Sequence[object]:
    if isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be a list of names, not the text {value!r}: write [{value!r}]")
    if not isinstance(value, list | tuple):
        raise InvalidArgumentError(f"{name} must be a list, not {_shown(value)}")
    if None in value:
        raise InvalidArgumentError(f"{name} must not contain None")
    return value


def _struct(name: str, kind: type, value: object) -> int:
    if not isinstance(value, kind):
        hint = f": write {_EXAMPLE}" if kind is ttypes.MulticastRequest else ""
        raise InvalidArgumentError(f"{name} must be a {kind.__name__}, not {_shown(value)}{hint}")
    for field in _REQUIRED.get(kind, ()):
        if getattr(value, field) in (None, ""):
            raise InvalidArgumentError(f"a {kind.__name__} needs a {field}: write {_EXAMPLE}")
    specs = filter(None, vars(kind)["thrift_spec"])
    return sum(_size(f"{s[2]} of {name}", s[1], s[3], getattr(value, s[2])) for s in specs)


def _number(name: str, bits: int, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgumentError(f"{name} must be a whole number, not {_shown(value)}")
    if not -(1 << bits) <= value < 1 << bits:
        raise InvalidArgumentError(f"{name} must be between -2^{bits} and 2^{bits} - 1")


def _named(name: str) -> str:
    return {"afterSequence": "after_sequence", "timeoutMs": "timeout", "filter": "states"}.get(name, name)


def _shown(value: object) -> str:
    shown = repr(value)
    return f"{shown if len(shown) <= 60 else shown[:60] + '…'} ({type(value).__name__})"
