"""Thrift structs as plain data for JSON output: unset fields left out, enumerated values by name."""

from __future__ import annotations

import json
from collections.abc import Mapping

from blast_api.ttypes import EventKind, PartState
from blast_client.api import states

# The runtime description of a struct does not identify enumerations.
_ENUMERATED: Mapping[str, Mapping[int, str]] = {
    "state": PartState._VALUES_TO_NAMES,
    "kind": EventKind._VALUES_TO_NAMES,
}


def plain(value: object) -> object:
    """Return a struct as a dict, a list of structs as a list of dicts, and any other value unchanged."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not hasattr(value, "thrift_spec"):
        return value
    fields = ((spec[2], getattr(value, spec[2])) for spec in value.thrift_spec if spec)
    return {name: _field(name, field) for name, field in fields if field is not None}


def to_json(value: object) -> str:
    """Return a struct as indented JSON."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def state_name(state: int) -> str:
    """Return the name of a `PartState`; an unknown number stays a number."""
    return str(states.PartState(state))


def _field(name: str, value: object) -> object:
    if isinstance(value, int) and name in _ENUMERATED:
        return _ENUMERATED[name].get(value, value)
    return plain(value)
