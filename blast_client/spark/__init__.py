"""Spark broadcasts over Blast: `blast_broadcast(sc, value)` instead of `sc.broadcast(value)`.

Names are imported on first access: Python workers of executors unpickle objects of this package without the modules of
the driver. Start with `broadcasts.py` at the driver and `received.py` at an executor.
"""

TYPE_CHECKING = False
"""True for type checkers, as in `blast_client`."""

if TYPE_CHECKING:
    from blast_client.spark.broadcasts import BlastBroadcast, blast_broadcast
    from blast_client.spark.reasons import Reason, reasons_so_far
    from blast_client.spark.received import DestroyedError, ReceivedBroadcast, ValueUnreachableError
    from blast_client.spark.settings import SparkSettings

_HOMES = {
    "BlastBroadcast": "broadcasts",
    "DestroyedError": "received",
    "ValueUnreachableError": "received",
    "Reason": "reasons",
    "ReceivedBroadcast": "received",
    "SparkSettings": "settings",
    "blast_broadcast": "broadcasts",
    "reasons_so_far": "reasons",
}

__all__ = [
    "BlastBroadcast",
    "DestroyedError",
    "Reason",
    "ReceivedBroadcast",
    "SparkSettings",
    "ValueUnreachableError",
    "blast_broadcast",
    "reasons_so_far",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
