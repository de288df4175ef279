"""Multicast methods, one per module, on the flow-level simulation.

Start with `method.py`, the interface of all of them.
"""

PACKET_METHODS = (
    "naive",
    "hdfs",
    "overlay",
    "pipeline",
    "trees",
    "torrent",
    "ip-multicast",
    "packet-multicast",
    "rack-fabric",
)
"""Methods that need no optical network."""

METHODS = (*PACKET_METHODS, "blast")
