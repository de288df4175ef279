"""Looking for light at the outputs of an optical switch, where it measures power."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol

from tl1_driver.protocol.circuits import Port

POLL_SECONDS = 0.005
"""A fraction of the switching time that the paper measured (14 ms), and few commands to the switch."""

When = Literal["off", "before_grant", "under_traffic"]
"""A switch may not measure power, measure it always, or only while data flows."""


class Powers(Protocol):
    """An interface that reads the powers of a switch."""

    async def powers(self) -> dict[Port, float]:
        """Return the power in dBm at every measured port."""


@dataclass(frozen=True, slots=True)
class LightCheck:
    """When to look, below how many dBm an output is dark, and how many seconds light may take to come."""

    when: When = "off"
    dark_threshold_dbm: float = -30.0
    wait: float = 0.5

    async def dark(self, switch: Powers, outputs: Collection[int]) -> frozenset[int]:
        """Return the outputs that are dark for `wait`; unmeasured outputs count as lit.

        Raises the Tl1Error of a failed reading.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.wait
        while True:
            powers = await switch.powers()
            dark = frozenset(
                n for n in outputs if powers.get(Port("out", n), self.dark_threshold_dbm) < self.dark_threshold_dbm
            )
            if not dark or loop.time() >= until:
                return dark
            await asyncio.sleep(POLL_SECONDS)
