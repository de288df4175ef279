"""What may be said to `blast send`: ways, and orders."""

from __future__ import annotations

AUTO = "auto"
"""Beside the carriers of `blast_transport.wire.carriers`: whichever is best."""
RACKS, NAMES, GIVEN = "racks", "names", "given"
STREAM = "-"
