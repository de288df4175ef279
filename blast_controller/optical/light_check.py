"""Looking for light at the outputs of an optical switch, where it measures power."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from optical_switch.model import Port, PowerReading
from optical_switch.session import LightCheckTime

POLL_SECONDS = 0.005
"""A fraction of the switching time that the paper measured (14 ms), and few commands to the switch."""


class Powers(Protocol):
    """An interface that reads the powers of a switch."""

    async def read_powers(self) -> Sequence[PowerReading]:
        """Return the power at every measured port."""


@dataclass(frozen=True, slots=True)
class LightCheck:
    """When to look, below how many dBm an output is dark, and how many seconds light may take to come."""

    when: LightCheckTime = "off"
    dark_threshold_dbm: float = -30.0
    wait: float = 0.5

    async def dark(self, switch: Powers, outputs: Collection[int]) -> frozenset[int]:
        """Return the outputs that are dark for `wait`; unmeasured outputs count as lit.

        Raises the OpticalSwitchError of a failed reading.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.wait
        while True:
            powers = dict(await switch.read_powers())
            dark = frozenset(
                n for n in outputs if powers.get(Port("out", n), self.dark_threshold_dbm) < self.dark_threshold_dbm
            )
            if not dark or loop.time() >= until:
                return dark
            await asyncio.sleep(POLL_SECONDS)
