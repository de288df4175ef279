"""What may be said to `blast send`: ways, and orders."""

from __future__ import annotations

AUTO = "auto"
"""Beside the transports of `blast_transport.wire.transports`: whichever is best."""
RACKS, NAMES, GIVEN = "racks", "names", "given"
STREAM = "-"
HOST_VARIABLE, SECRET_VARIABLE = "BLAST_HOST", "BLAST_SECRET_FILE"
"""Of the environment: this host as the controller knows it, and the file with the secret that the agents know."""
