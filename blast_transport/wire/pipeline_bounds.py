"""What a sender may order of the nodes of a pipeline, and what holds where it says nothing. Seconds and bytes.

A node holds both ends to these: what one sender may cost a host is for nobody but the host to say.
"""

from __future__ import annotations

NODE_TIMEOUT = 1.0
"""So long a neighbor gives no sign of life before it is taken for dead."""
SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 0.2, 10.0
"""Below, whoever is only busy seems dead; above, those behind a dead one find themselves without predecessor."""

SMALLEST_BUFFER, LARGEST_BUFFER = 8 << 20, 64 << 20
"""A node runs ahead of the next one by a quarter of it, and hears from it at every MiB; as much as a session may hold
in memory of blocks that come too early."""
