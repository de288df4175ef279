"""What may be said to `blast send`: ways, orders, where agents are."""

from __future__ import annotations

AUTO = "auto"
"""Beside the carriers of `blast_transport.wire.carriers`: whichever is best."""
RACKS, NAMES, GIVEN = "racks", "names", "given"
STREAM = "-"
AGENT_PORT = 9095

Receiver = tuple[str, str, int]
"""(name, address, port) of an agent."""
