"""Hosts of a bed that are far from each other: what they send to each other over packets arrives later.

Ingress of a host's port redirects what is for a far host to one device, which gives it back to the bridge when its time
has come; the bridge then delivers it. So whatever talks, over whichever port, is as far away as on a long link.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mininet_topos.netdev import batch
from transport_bed.bed import Bed
from transport_bed.failures import CannotRun
from transport_bed.programs import HERE

_DEVICE = "far"


@contextmanager
def apart(bed: Bed, pairs: Iterable[tuple[int, int]], one_way_ms: float) -> Iterator[None]:
    """These pairs of a bed without racks, both ways. Raises CannotRun, HostError."""
    middle = bed.switch.namespace
    command = ["mnexec", "-a", str(middle), sys.executable, str(HERE / "delay_relay.py"), _DEVICE, str(one_way_ms)]
    with subprocess.Popen(command, env=bed.environment, stdout=subprocess.PIPE, start_new_session=True) as relay:
        try:
            assert relay.stdout is not None
            if relay.stdout.readline() != b"ready\n":
                raise CannotRun("the relay that adds distance did not start: it needs /dev/net/tun")
            _redirect(bed, [*pairs], middle)
            yield
        finally:
            relay.terminate()


def _redirect(bed: Bed, pairs: list[tuple[int, int]], middle: int) -> None:
    # The bridge learns nothing at that port, where everybody's frames come from, and floods nothing to it.
    quiet = "learning off flood off mcast_flood off bcast_flood off"
    plug = f"link set {_DEVICE} type bridge_slave {quiet}"
    batch("ip", [f"link set {_DEVICE} master rack0", plug, f"link set {_DEVICE} up"], middle)
    ways = [way for one, other in pairs for way in ((one, other), (other, one))]
    lines = [f"qdisc add dev packet{host} ingress" for host in sorted({sender for sender, _ in ways})]
    lines += [
        f"filter add dev packet{sender} parent ffff: protocol ip prio 1 u32 match ip dst "
        f"{bed.packet_address(receiver)}/32 action mirred egress redirect dev {_DEVICE}"
        for sender, receiver in ways
    ]
    batch("tc", lines, middle)
