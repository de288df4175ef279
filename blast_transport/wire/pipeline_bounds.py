"""Bounds and defaults of the pipeline settings that a sender may request. Seconds and bytes.

Both ends check them: the host limits its own cost, whatever the sender requests.
"""

from __future__ import annotations

NODE_TIMEOUT = 1.0
"""Default: silence after which a neighbor counts as dead."""
SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 0.2, 10.0
"""A shorter timeout mistakes busy nodes for dead ones; with a longer one, nodes behind a dead node lose their
predecessor."""

SMALLEST_BUFFER, LARGEST_BUFFER = 8 << 20, 64 << 20
"""A node is at most a quarter of the buffer ahead of its successor, which reports every MiB. The maximum equals the
bytes that a session may hold of blocks received early."""
