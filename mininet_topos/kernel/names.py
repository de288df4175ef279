"""Names of what a lab puts into the kernel, all under the lab's own short prefix.

Several labs run side by side on one machine, and `blast lab down` has to find exactly the remains of one of them, so
every interface and bridge is called `<lab id><piece>`: `b3f2t1o1` is the first optical port of ToR 1 in lab b3f2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mininet_topos.kernel.errors import PlanError

MARK = "BLAST_LAB"
"""Environment variable that every process of a lab carries; its value is the lab's id."""

BRIDGE_KEY = "blast-lab"
"""Key in `external_ids` of a lab's Open vSwitch bridges; its value is the lab's id."""

_ID = re.compile(r"b[0-9a-f]{3}")


@dataclass(frozen=True)
class Names:
    """The names of one lab. Raises `PlanError` unless `lab` is `b` and three hexadecimal digits."""

    lab: str

    def __post_init__(self) -> None:
        if not is_lab_id(self.lab):
            raise PlanError(f"{self.lab!r} is no lab id: write b and three hexadecimal digits, like b3f2")

    def bridge(self, datapath: int) -> str:
        """Return the name of the Open vSwitch bridge with this datapath id."""
        return f"{self.lab}t{datapath}"

    def access_at_tor(self, rack: int, host: int) -> str:
        """Return the ToR's end of a host's access link."""
        return f"{self.lab}t{rack}h{host}"

    def access_at_host(self, rack: int, host: int) -> str:
        """Return the host's end of its access link."""
        return f"{self.lab}r{rack}h{host}"

    def uplink_at_tor(self, rack: int) -> str:
        """Return the ToR's end of a rack's link to the packet core."""
        return f"{self.lab}t{rack}u1"

    def uplink_at_core(self, rack: int) -> str:
        """Return the core's end of a rack's link to the packet core."""
        return f"{self.lab}c{rack}"

    def core_bridge(self) -> str:
        """Return the name of the kernel bridge that is the packet core."""
        return f"{self.lab}c0"

    def optical_at_tor(self, rack: int, number: int) -> str:
        """Return the ToR's end of the pair of fibers on a rack's optical port (numbers from 1)."""
        return f"{self.lab}t{rack}o{number}"

    def ocs_port(self, port: int) -> str:
        """Return the optical switch's own netdev of port `port`: its input receives, its output transmits."""
        return f"{self.lab}p{port}"

    def splitter_side(self, port: int) -> str:
        """Return the netdev of a splitter at the other end of the optical switch's port `port`."""
        return f"{self.lab}s{port}"

    def static_at_tor(self, rack: int, tree: int) -> str:
        """Return the ToR's end of its fibers to a static tree (numbers from 1)."""
        return f"{self.lab}t{rack}f{tree}"

    def static_at_host(self, rack: int, host: int) -> str:
        """Return a host's card in a static tree."""
        return f"{self.lab}l{rack}h{host}"

    def static_fiber(self, tree: int, fiber: int) -> str:
        """Return the netdev of a static tree's splitter at its fiber number `fiber` (0: the root's)."""
        return f"{self.lab}g{tree}f{fiber}"


def is_lab_id(text: str) -> bool:
    """Return whether `text` has the form of a lab's id."""
    return _ID.fullmatch(text) is not None


def owner(interface: str) -> str | None:
    """Return the id of the lab whose naming scheme `interface` follows, or None."""
    match = re.fullmatch(rf"({_ID.pattern})[a-z]\d+([a-z]\d+)?", interface)
    return match.group(1) if match else None
