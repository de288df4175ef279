"""How interfaces of the lab are shaped: `tc -batch` lines, decided purely.

This kernel need not have netem or fq, so everything is tbf, htb and fifos. Bursts are two frames on access links and
light, so that a rate is a rate over a few milliseconds too, and 10 ms on uplinks, so that a busy machine does not make
them slower than planned. The queues differ, and are counted in bytes where they can be:

* a host's is long, as a NIC's: its senders block on their socket buffer before it overflows;
* light's are 100 ms: a ToR's process runs in turns with others on this machine, and what has waited for its turn
  arrives in a burst that no glass would have made;
* the packet network's are 10 ms, as a shallow switch's: a longer one would take light's place in the send buffer that
  all ports of Open vSwitch share (`socket_buffers.py`). The one before a host drops its oldest frame when it is full,
  not the one that comes: Open vSwitch hands over up to 32 frames at once, and when the kernel refuses one of them it
  drops all that follow, whatever their class. A flood would so take the messages that control a light transfer.
"""

from __future__ import annotations

PRIORITY_DSCP = 46
"""Expedited forwarding: how Blast's rules mark what comes out of the light."""

_ETHERNET_HEADER = 14
_PACKET_QUEUE_SECONDS = 0.01
_LIGHT_QUEUE_SECONDS = 0.1
_HOST_QUEUE_BYTES = 4_000_000
_BEST_EFFORT_SHARE = 0.02
"""What is left of an access link to the packet network while light takes all it can; without light it has 100 %."""


def host_shaping(interface: str, rate_mbps: float, mtu: int) -> list[str]:
    """A host's transmitter."""
    return [_tbf(interface, rate_mbps, _burst(mtu), _HOST_QUEUE_BYTES)]


def uplink_shaping(interface: str, rate_mbps: float, mtu: int) -> list[str]:
    """A ToR's transmitter towards the packet core, or the core's towards a ToR."""
    queue = packet_queue(rate_mbps, mtu)
    return [_tbf(interface, rate_mbps, f"{queue}b", queue)]


def light_shaping(interface: str, rate_mbps: float, mtu: int) -> list[str]:
    """A ToR's optical transmitter, which is what gives light its rate."""
    return [_tbf(interface, rate_mbps, _burst(mtu), light_queue(rate_mbps, mtu))]


def access_shaping(interface: str, rate_mbps: float, mtu: int) -> list[str]:
    """A ToR's transmitter towards a host: packets with `PRIORITY_DSCP` go first, the rest shares a short queue.

    ARP goes with them: a host whose address is asked for in vain gets nothing at all. The classification is here
    because a netdev bridge ignores OpenFlow's set_queue.
    """
    light, rest = _kbit(rate_mbps * (1 - _BEST_EFFORT_SHARE)), _kbit(rate_mbps * _BEST_EFFORT_SHARE)
    frames = packet_queue(rate_mbps, mtu) // _frame(mtu)
    common = f"ceil {_kbit(rate_mbps)} burst {_burst(mtu)} cburst {_burst(mtu)} quantum {_frame(mtu)}"
    return [
        f"qdisc add dev {interface} root handle 1: htb default 3",
        f"class add dev {interface} parent 1: classid 1:1 htb rate {_kbit(rate_mbps)} {common}",
        f"class add dev {interface} parent 1:1 classid 1:2 htb prio 0 rate {light} {common}",
        f"class add dev {interface} parent 1:1 classid 1:3 htb prio 1 rate {rest} {common}",
        f"qdisc add dev {interface} parent 1:2 handle 2: bfifo limit {light_queue(rate_mbps, mtu)}b",
        f"qdisc add dev {interface} parent 1:3 handle 3: pfifo_head_drop limit {frames}",
        f"filter add dev {interface} parent 1: protocol ip prio 1 "
        f"u32 match ip tos {PRIORITY_DSCP << 2:#x} 0xfc flowid 1:2",
        f"filter add dev {interface} parent 1: protocol arp prio 2 u32 match u32 0 0 flowid 1:2",
    ]


def packet_queue(rate_mbps: float, mtu: int) -> int:
    """Bytes in a queue of the packet network at a ToR, never less than four frames."""
    return max(int(rate_mbps * 1e6 / 8 * _PACKET_QUEUE_SECONDS), 4 * _frame(mtu))


def light_queue(rate_mbps: float, mtu: int) -> int:
    """Bytes in a queue of light at a ToR, never less than four frames."""
    return max(int(rate_mbps * 1e6 / 8 * _LIGHT_QUEUE_SECONDS), 4 * _frame(mtu))


def _tbf(interface: str, rate_mbps: float, burst: str, queue: int) -> str:
    return f"qdisc add dev {interface} root handle 1: tbf rate {_kbit(rate_mbps)} burst {burst} limit {queue}b"


def _burst(mtu: int) -> str:
    return f"{2 * _frame(mtu)}b"


def _frame(mtu: int) -> int:
    return mtu + _ETHERNET_HEADER


def _kbit(rate_mbps: float) -> str:
    return f"{max(1, round(rate_mbps * 1000))}kbit"
