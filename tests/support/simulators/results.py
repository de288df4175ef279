"""Results as commands print them, without their provenance: the part that is reproducible bit for bit."""

from __future__ import annotations

import json
from typing import Any


def results_of(printed: str) -> dict[str, Any]:
    """Return a JSON result without its provenance."""
    record: dict[str, Any] = json.loads(printed)
    assert record.pop("provenance")["format"] == 1
    return record
