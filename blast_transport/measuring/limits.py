"""Limits of measurements at a host."""

from __future__ import annotations

from typing import NamedTuple


class MeasuringLimits(NamedTuple):
    """Limits of one measurement: bytes that this host sends or receives in total (0: disabled), and seconds."""

    bytes: int = 1 << 30
    seconds: float = 10.0
