"""JSON in Python, as `json.loads` returns it; each reader checks the keys that it uses."""

from __future__ import annotations

from typing import Any

JsonValue = Any
"""An object, list, text, number, bool or None."""
JsonObject = dict[str, Any]
