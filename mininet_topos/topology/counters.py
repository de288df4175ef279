"""Kernel interface counters of a lab, read where the ToRs are (the root namespace) and inside hosts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mininet_topos.kernel.names import Names
from mininet_topos.topology.plan import LabPlan


@dataclass(frozen=True)
class Traffic:
    """Traffic of an interface since its creation, in bytes and packets of the link layer."""

    sent_bytes: int
    received_bytes: int
    sent_packets: int
    received_packets: int

    def __sub__(self, earlier: Traffic) -> Traffic:
        return Traffic(
            self.sent_bytes - earlier.sent_bytes,
            self.received_bytes - earlier.received_bytes,
            self.sent_packets - earlier.sent_packets,
            self.received_packets - earlier.received_packets,
        )

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.sent_bytes + other.sent_bytes,
            self.received_bytes + other.received_bytes,
            self.sent_packets + other.sent_packets,
            self.received_packets + other.received_packets,
        )


NOTHING = Traffic(0, 0, 0, 0)


class Counters:
    """The counters of one lab, from the ToR's point of view: `sent` of an optical port is what it put into light."""

    def __init__(self, plan: LabPlan, names: Names) -> None:
        self._plan, self._names = plan, names

    def optical(self, rack: int, number: int = 1) -> Traffic:
        """Return the counters of a rack's optical port."""
        return interface_traffic(self._names.optical_at_tor(rack, number))

    def uplink(self, rack: int) -> Traffic:
        """Return the counters of a rack's link to the packet core."""
        return interface_traffic(self._names.uplink_at_tor(rack))

    def access(self, rack: int, host: int) -> Traffic:
        """Return the counters of a host's access link."""
        return interface_traffic(self._names.access_at_tor(rack, host))

    def core(self) -> Traffic:
        """Return the counters of all racks' links to the packet core together.

        Every packet across the core is sent once and received once.
        """
        return sum((self.uplink(rack.number) for rack in self._plan.rack_plans), NOTHING)


def interface_traffic(interface: str) -> Traffic:
    """Return the counters of an interface in the namespace that /sys shows.

    Raises `FileNotFoundError` if there is no such interface.
    """
    statistics = Path("/sys/class/net") / interface / "statistics"
    names = ("tx_bytes", "rx_bytes", "tx_packets", "rx_packets")
    return Traffic(*(int((statistics / name).read_text()) for name in names))
