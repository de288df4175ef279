"""A table of an optical switch as text of the controller's configuration file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

TABLE = "optical_switch"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def table_text(table: Mapping[str, object], comments: Iterable[str] = ()) -> str:
    """Return a table as TOML.

    Parameters
    ----------
    table : Mapping[str, object]
        Keys and values; a value that is a mapping becomes a table of its own after all others.
    comments : Iterable[str]
        Lines to write above it.

    Returns
    -------
    str
        The text, without a line end.
    """
    return "\n".join([*(f"# {comment}" for comment in comments), f"[[{TABLE}]]", *_lines(table, TABLE)])


def _lines(table: Mapping[str, object], name: str) -> Iterator[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    for key, value in table.items():
        if key not in inner:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in inner.items():
        place = f"{name}.{_key(key)}"
        yield f"[{place}]"
        yield from _lines(value, place)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return str(value) if isinstance(value, int | float) else _string(str(value))


def _string(text: str) -> str:
    # A basic string of TOML is a string of JSON, but for DEL and the surrogates with which JSON can write a character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
