"""Recordings for tests."""

from __future__ import annotations

from blast_controller.moments.encoder import Difference, Rows


def taken(difference: Difference, rows: Rows) -> None:
    """Let rows change so."""
    for name, row in difference.items():
        if row is None:
            rows.pop(name, None)
        else:
            rows[name] = row
