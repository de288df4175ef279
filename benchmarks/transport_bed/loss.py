"""Datagrams that a receiver loses: what it has in its environment for that."""

from __future__ import annotations

from pathlib import Path

from transport_bed.shape import MTU

_UDP_HEADERS = 28


def losing(share: float, library: Path, host: int, count: Path) -> dict[str, str]:
    """Each host loses its own `share`, by `programs/lossy.c` compiled as `library`, and counts them in `count`."""
    settings = {"LOSSY_SHARE": repr(share), "LOSSY_SEED": str(host), "LOSSY_COUNT": str(count)}
    return {"LD_PRELOAD": str(library), "LOSSY_DATAGRAM": str(MTU - _UDP_HEADERS), **settings}
