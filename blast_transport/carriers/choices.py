"""Which carrier brings the data on, and what is known of the way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from blast_transport.wire.carriers import OPTICAL, PIPELINE, UNICAST

QUEUE_BYTES, QUEUE_SECONDS = 1 << 20, 0.0005
"""The smallest queue on a path of which nobody said more: the window is never larger. Faster ports have longer ones."""


@dataclass(frozen=True, slots=True)
class CarrierChoice:
    """One of the ways there are; `carrier` is its name on the wire."""

    carrier: ClassVar[str] = ""

    @property
    def window_bytes(self) -> int | None:
        """What the way holds, None if nobody knows."""
        return None


@dataclass(frozen=True, slots=True)
class Light(CarrierChoice):
    """Permission to multicast to `group`:`port` at `rate` bits/s on the wire, until a time.monotonic().

    `queue_bytes` is the smallest queue on the path, where somebody knows it.
    """

    carrier: ClassVar[str] = OPTICAL
    group: str
    port: int
    rate: float
    until: float = math.inf
    queue_bytes: int | None = None

    @property
    def window_bytes(self) -> int:
        """The smallest queue on this light's path, as far as is known."""
        return self.queue_bytes or max(QUEUE_BYTES, int(self.rate / 8 * QUEUE_SECONDS))


@dataclass(frozen=True, slots=True)
class Dark(CarrierChoice):
    """Wait: there is no light until there is; receivers keep what they have, and repairs go on."""


@dataclass(frozen=True, slots=True)
class Chain(CarrierChoice):
    """Along a pipeline over the packet network, in this `order` of names (None: the natural order of the names).

    `slowest_rate` in bits/s excludes slower nodes; 0: none.
    """

    carrier: ClassVar[str] = PIPELINE
    order: tuple[str, ...] | None = None
    slowest_rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Unicast(CarrierChoice):
    """To every receiver over its own connection, one copy each."""

    carrier: ClassVar[str] = UNICAST
