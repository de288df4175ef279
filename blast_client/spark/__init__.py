"""Spark's broadcasts by Blast, asked for: `blast_broadcast(sc, value)` in place of `sc.broadcast(value)`.

Names are loaded when they are first asked for: Python's workers on executors unpickle what lies in here, and need
nothing of what the driver does.
"""

TYPE_CHECKING = False
"""True for type checkers, as in `blast_client`."""

if TYPE_CHECKING:
    from blast_client.spark.broadcasts import BlastBroadcast, blast_broadcast
    from blast_client.spark.reasons import Reason, reasons_so_far
    from blast_client.spark.received import Destroyed, NotReachable, ReceivedBroadcast
    from blast_client.spark.settings import SparkSettings

_HOMES = {
    "BlastBroadcast": "broadcasts",
    "Destroyed": "received",
    "NotReachable": "received",
    "Reason": "reasons",
    "ReceivedBroadcast": "received",
    "SparkSettings": "settings",
    "blast_broadcast": "broadcasts",
    "reasons_so_far": "reasons",
}

__all__ = [
    "BlastBroadcast",
    "Destroyed",
    "NotReachable",
    "Reason",
    "ReceivedBroadcast",
    "SparkSettings",
    "blast_broadcast",
    "reasons_so_far",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
