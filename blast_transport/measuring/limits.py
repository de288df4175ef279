"""What a host may be asked for."""

from __future__ import annotations

from typing import NamedTuple


class MeasuringLimits(NamedTuple):
    """What one measurement may take: bytes that this host sends or takes in all (0: there is none), and seconds."""

    bytes: int = 1 << 30
    seconds: float = 10.0
