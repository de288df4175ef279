"""Values of options of `blast send`, and environment variables."""

from __future__ import annotations

AUTO = "auto"
"""The best transport; the others are in `blast_transport.wire.transports`."""
RACKS, NAMES, GIVEN = "racks", "names", "given"
STREAM = "-"
HOST_VARIABLE, SECRET_VARIABLE = "BLAST_HOST", "BLAST_SECRET_FILE"
"""Environment variables: the name of this host in the controller's configuration, and the agents' secret file."""
