"""Traffic shaping of the lab's interfaces: pure functions that return `tc -batch` lines.

This kernel need not have netem or fq, so everything is tbf, htb and fifos. Bursts are two frames on access links and
optical ports, so that a rate holds over a few milliseconds too, and 10 ms on uplinks, so that a busy machine does not
make them slower than planned. The queues differ, and are counted in bytes if possible:

* a host's is long, as a NIC's: its senders block on their socket buffer before it overflows;
* those of optical ports are 100 ms: a ToR's process shares the CPU with others on this machine, and its waiting frames
  are sent in bursts that do not occur on fiber;
* the packet network's are 10 ms, as a shallow switch's: a longer one would displace optical traffic in the send buffer
  that all ports of Open vSwitch share (`socket_buffers.py`). The one before a host drops its oldest frame when it is
  full, not the arriving one: Open vSwitch passes on up to 32 frames at once, and when the kernel refuses one of them it
  drops all that follow, whatever their class. So a flood would drop the control messages of an optical transfer.
"""

from __future__ import annotations

PRIORITY_DSCP = 46
"""Expedited forwarding: the mark of Blast's rules for frames from optical ports."""

_ETHERNET_HEADER = 14
_PACKET_QUEUE_SECONDS = 0.01
_LIGHT_QUEUE_SECONDS = 0.1
_HOST_QUEUE_BYTES = 4_000_000
_BEST_EFFORT_SHARE = 0.02
"""Share of an access link for the packet network while optical traffic uses all it can; otherwise it has 100 %."""


def host_shaping(interface: str, rate_mbps: float, mtu: int) -> list[str]:
    """Return the shaping of a host's transmitter."""
    return [_tbf(interface, rate_mbps, _burst(mtu), _HOST_QUEUE_BYTES)]


def uplink_shaping(interface: str, rate_mbps: float, mtu: int) -> list[str]:
    """Return the shaping of a ToR's transmitter to the packet core, or the core's to a ToR."""
    queue = packet_queue(rate_mbps, mtu)
    return [_tbf(interface, rate_mbps, f"{queue}b", queue)]


def light_shaping(interface: str, rate_mbps: float, mtu: int) -> list[str]:
    """Return the shaping of a ToR's optical transmitter, which sets the optical rate."""
    return [_tbf(interface, rate_mbps, _burst(mtu), light_queue(rate_mbps, mtu))]


def access_shaping(interface: str, rate_mbps: float, mtu: int) -> list[str]:
    """Return the shaping of a ToR's transmitter to a host: `PRIORITY_DSCP` first, the rest shares a short queue.

    ARP has priority too: a host that is not resolved receives nothing. The classification is here because a netdev
    bridge ignores OpenFlow's set_queue.
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
    """Return the bytes in a queue of the packet network at a ToR, at least four frames."""
    return max(int(rate_mbps * 1e6 / 8 * _PACKET_QUEUE_SECONDS), 4 * _frame(mtu))


def light_queue(rate_mbps: float, mtu: int) -> int:
    """Return the bytes in a queue of an optical port at a ToR, at least four frames."""
    return max(int(rate_mbps * 1e6 / 8 * _LIGHT_QUEUE_SECONDS), 4 * _frame(mtu))


def _tbf(interface: str, rate_mbps: float, burst: str, queue: int) -> str:
    return f"qdisc add dev {interface} root handle 1: tbf rate {_kbit(rate_mbps)} burst {burst} limit {queue}b"


def _burst(mtu: int) -> str:
    return f"{2 * _frame(mtu)}b"


def _frame(mtu: int) -> int:
    return mtu + _ETHERNET_HEADER


def _kbit(rate_mbps: float) -> str:
    return f"{max(1, round(rate_mbps * 1000))}kbit"
