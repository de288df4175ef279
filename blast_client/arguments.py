"""Whether what a caller gave can be sent: said in a sentence before anything is asked of the controller.

What the interface's types demand is checked here, from the generated description of each call; what makes a good
request is the controller's to say.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence

from thrift.Thrift import TType

from blast_api import ttypes
from blast_client.base_error import WrongArgument

MAX_BYTES = (1 << 20) - (1 << 16)
"""Text in one call: a frame is at most 1 MiB."""

_REQUIRED: Mapping[type, Sequence[str]] = {ttypes.MulticastRequest: ("key", "sender", "receivers", "bytes")}
_MAY_BE_LEFT_OUT = {"drain": "enable"}
_WHOLE = {TType.I32: 31, TType.I64: 63}
_EXAMPLE = 'MulticastRequest("iteration-1", "r1h1", ["r2h1", "r3h1"], 300_000_000)'


def check_call(method: Callable[..., object], arguments: Sequence[object]) -> None:
    """Whether these arguments of a call of a service's method can be sent. Raises WrongArgument."""
    # The structs of its arguments stand beside the interface that declares it.
    name, described = method.__name__, vars(sys.modules[method.__module__])
    text = 0
    for spec, value in zip(filter(None, described[f"{name}_args"].thrift_spec), arguments, strict=False):
        if value is None and _MAY_BE_LEFT_OUT.get(name) != spec[2]:
            raise WrongArgument(f"{name} needs {_named(spec[2])}, and got None")
        text += _size(_named(spec[2]), spec[1], spec[3], value)
    if text > MAX_BYTES:
        raise WrongArgument(f"{text} bytes of names do not fit into one call, which holds {MAX_BYTES}: give fewer")


def check_seconds(seconds: object) -> None:
    """Whether so long can be waited. Raises WrongArgument."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise WrongArgument(f"the time to wait must be a number of seconds, not negative, and not {seconds!r}")


def _size(what: str, kind: int, detail: object, value: object) -> int:
    """How many bytes of text are in a value of this type; None has none. Raises WrongArgument."""
    if value is None:
        return 0
    match kind, detail:
        case TType.STRING, _:
            return _text(what, value)
        case TType.LIST, (int(inner), inner_detail, _):
            return sum(_size(f"each of {what}", inner, inner_detail, one) for one in _list(what, value))
        case TType.STRUCT, [type() as struct, _]:
            return _struct(what, struct, value)
        case TType.BOOL, _ if not isinstance(value, bool):
            raise WrongArgument(f"{what} must be True or False, not {_shown(value)}")
        case ((TType.I32 | TType.I64), _):
            _number(what, _WHOLE[kind], value)
    return 0


def _text(what: str, value: object) -> int:
    if not isinstance(value, str):
        raise WrongArgument(f"{what} must be a text, not {_shown(value)}")
    try:
        return len(value.encode())
    except UnicodeEncodeError as error:
        raise WrongArgument(f"{what} must be text that can be written as UTF-8, not {_shown(value)}") from error


def _list(what: str, value: object) -> Sequence[object]:
    if isinstance(value, str):
        raise WrongArgument(f"{what} must be a list of names, not the text {value!r}: write [{value!r}]")
    if not isinstance(value, list | tuple):
        raise WrongArgument(f"{what} must be a list, not {_shown(value)}")
    if None in value:
        raise WrongArgument(f"{what} must not have None in it")
    return value


def _struct(what: str, kind: type, value: object) -> int:
    if not isinstance(value, kind):
        hint = f": write {_EXAMPLE}" if kind is ttypes.MulticastRequest else ""
        raise WrongArgument(f"{what} must be a {kind.__name__}, not {_shown(value)}{hint}")
    for name in _REQUIRED.get(kind, ()):
        if getattr(value, name) in (None, ""):
            raise WrongArgument(f"a {kind.__name__} needs a {name}: write {_EXAMPLE}")
    specs = filter(None, vars(kind)["thrift_spec"])
    return sum(_size(f"{s[2]} of {what}", s[1], s[3], getattr(value, s[2])) for s in specs)


def _number(what: str, bits: int, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongArgument(f"{what} must be a whole number, not {_shown(value)}")
    if not -(1 << bits) <= value < 1 << bits:
        raise WrongArgument(f"{what} must be between -2^{bits} and 2^{bits} - 1")


def _named(name: str) -> str:
    return {"afterSequence": "after_sequence", "timeoutMs": "timeout", "filter": "states"}.get(name, name)


def _shown(value: object) -> str:
    shown = repr(value)
    return f"{shown if len(shown) <= 60 else shown[:60] + '…'} ({type(value).__name__})"
