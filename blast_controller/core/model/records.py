"""Records: state that must be on disk before any command reaches a device. The core returns them first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blast_base.json_types import JsonValue
from blast_controller.core.model.identifiers import ElementId

Body = Mapping[str, JsonValue]
"""The JSON data that the journal keeps for one object."""


@dataclass(frozen=True, slots=True)
class Record:
    """The new state of one object.

    `kind` is "request", "event", "reservation", "element", "probe", "late" or "meta"; `body` is JSON data, None to
    delete the object; `elements` are the ports and splitters that a reservation holds; `note` is a short description of
    the change.
    """

    kind: str
    key: str
    body: Body | None
    elements: frozenset[ElementId] = frozenset()
    note: str = ""
