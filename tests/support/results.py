"""Results as commands print them, without their provenance: the part that repeats bit for bit."""

from __future__ import annotations

import json
from typing import Any


def results_of(printed: str) -> dict[str, Any]:
    """What a JSON result holds beside its provenance."""
    record: dict[str, Any] = json.loads(printed)
    assert record.pop("provenance")["format"] == 1
    return record
