"""What must be on disk before a device hears of it: the core returns records first, the runtime persists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blast_controller.core.model.identifiers import ElementId

Body = Mapping[str, Any]
"""What the journal keeps of one thing, as JSON has it."""


@dataclass(frozen=True, slots=True)
class Record:
    """The new state of one thing.

    `kind` is "request", "event", "reservation", "element", "probe", "late" or "meta"; `body` is JSON-able, None when
    the thing is to be forgotten; `elements` are the ports and splitters that a reservation holds; `note` says in a word
    or two what happened.
    """

    kind: str
    key: str
    body: Body | None
    elements: frozenset[ElementId] = frozenset()
    note: str = ""
