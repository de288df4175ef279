"""The options `--set KEY=VALUE` as a table of the configuration file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping

SwitchTable = dict[str, object]
"""A table of an optical switch, as TOML has it."""

_ARGUMENTS = {"address": "ADDRESS", "driver": "--driver"}


def place_of(table: Mapping[str, object]) -> str:
    """Return the address in a table, or the Unix socket in place of it."""
    return str(table.get("address") or table.get("socket"))


class InvalidSettingError(Exception):
    """An option `--set` cannot be used; the message is the end of a sentence."""


def settings_table(settings: Iterable[str]) -> SwitchTable:
    """Return options as a table.

    Parameters
    ----------
    settings : Iterable[str]
        Texts `KEY=VALUE`: a key of TOML, such as `ssh.user`, and a value of TOML. A value that is none, as a path is
        without quotes, counts as a string.

    Returns
    -------
    SwitchTable
        The table.

    Raises
    ------
    InvalidSettingError
        If a text has another form, or two of them contradict each other.
    """
    table: SwitchTable = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidSettingError(f"--set {text} has no value: write KEY=VALUE, for example ssh.user=admin")
        one = _table(f"{key} = 0")
        if one is None:
            raise InvalidSettingError(f"--set {text} has no key of TOML: write KEY=VALUE, for example ssh.user=admin")
        if (argument := next((_ARGUMENTS[name] for name in one if name in _ARGUMENTS), None)) is not None:
            raise InvalidSettingError(f"--set {text} is an argument of its own: give {argument}")
        if not _merge(table, _with_value(one, _value(value))):
            raise InvalidSettingError(f"--set {text} contradicts an earlier --set: give each key once")
    return table


def _table(text: str) -> SwitchTable | None:
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if len(found) == 1 else None


def _value(text: str) -> object:
    found = _table(f"value = {text}")
    return text if found is None or "value" not in found else found["value"]


def _with_value(nested: Mapping[str, object], value: object) -> SwitchTable:
    """Return nested tables with one key each, with this value in the innermost one."""
    return {name: _with_value(inner, value) if isinstance(inner, dict) else value for name, inner in nested.items()}


def _merge(table: SwitchTable, other: Mapping[str, object]) -> bool:
    """Add the keys of a table to another; return false if one of them has a value already."""
    for name, value in other.items():
        if name not in table:
            table[name] = value
            continue
        present = table[name]
        if not (isinstance(present, dict) and isinstance(value, dict) and _merge(present, value)):
            return False
    return True
