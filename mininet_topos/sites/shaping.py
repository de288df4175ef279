"""Traffic shaping of the links of sites: pure functions that return `tc -batch` lines.

Every transmitter has a class for its capacity, and in it one for each peer, whose ceiling is the rate of that path: htb
shares the capacity evenly among active classes, so that streams to different peers share an access link max-min fairly,
as in the model. (The classes' guaranteed rates are almost 0, because a class sends its guaranteed rate even when the
capacity is used up.) Streams of one path are served round robin too, by their source ports: in one queue, which never
loses a packet, a stream with a longer backlog gets more, and a stream that must wait for another one starves (measured:
three trees of Figure 2, unshaped, reached 88 Mbit/s and not 75).

A sender's queue is in its own host, so that the kernel holds TCP back before it overflows, as it does with a NIC. So
packets must be single frames: with segments of 64 KiB one stream had twice the share of another (measured). Behind
a wide link, before a receiver's access link, a queue of 40 ms drops the excess, as a router does; it is short
enough that TCP finds its rate within a second, and above ten frames from 3 Mbit/s on.

Acknowledgments have a separate unlimited class: in the model a link's directions are independent. So a path can also
be unusable in one direction only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MTU = 1500
FRAME = MTU + 14
PAYLOAD = MTU - 20 - 20 - 12
"""Of a frame with IPv4, TCP and the time stamps that Linux sends."""
WIRE = FRAME / PAYLOAD
"""Link bits for each bit of application data."""

_QUEUE_SECONDS = 0.04
_BURST_SECONDS = 0.005
"""A timer that comes late, as it does on a busy machine, loses nothing up to here."""
_MIN_QUEUE = 6 * FRAME
_OWN_RATE = "1kbit"
_FREE = "10gbit"
_FIRST_PEER, _FIRST_STREAM = 0x10, 0x100
_STREAM_CLASSES = 4
"""Classes of the streams of a path; of more streams, some share one."""
_ACKNOWLEDGMENTS = ("0x0000 0xffc0", "0x0040 0xfff0", "0x0050 0xffff")
"""Lengths of IP packets up to 80 bytes, as values and masks: TCP without data has no more."""


@dataclass(frozen=True)
class ShapedPeer:
    """The other end of a transmitter's traffic, by its number and address, with its rate in bits per second.

    `local`: its traffic is not part of the access link's.
    """

    number: int
    address: str
    rate: float
    local: bool = False

    @property
    def minor(self) -> str:
        """Its class."""
        return f"1:{_FIRST_PEER + self.number:x}"

    @property
    def stream_classes(self) -> list[str]:
        """The classes in it, one of which a stream is in by its source port."""
        return [f"1:{_FIRST_STREAM + self.number * _STREAM_CLASSES + slot:x}" for slot in range(_STREAM_CLASSES)]


def access_link(
    device: str, capacity: float | None, side: Literal["src", "dst"], peers: Sequence[ShapedPeer]
) -> list[str]:
    """Return the lines of a transmitter with this capacity (bits per second; None: no limit) and a class per peer."""
    lines = _root(device, capacity)
    for peer in peers:
        lines += [*_set("add", device, peer), *_filters(device, peer, f"match ip {side} {peer.address}/32")]
    return lines


def shared_link(device: str, rate: float) -> list[str]:
    """Return the lines of a transmitter that is a shared link for all its users."""
    everyone = ShapedPeer(0, "0.0.0.0", rate)
    return [*_root(device, rate), *_set("add", device, everyone), *_filters(device, everyone, "")]


def changed(device: str, peer: ShapedPeer) -> list[str]:
    """Return the lines that set another rate for a peer of a transmitter."""
    return _set("change", device, peer)


def _root(device: str, capacity: float | None) -> list[str]:
    limit = f"rate {_FREE} quantum {FRAME}" if capacity is None else _own(capacity)
    return [
        f"qdisc add dev {device} root handle 1: htb default 2",
        f"class add dev {device} parent 1: classid 1:1 htb {limit}",
        f"class add dev {device} parent 1: classid 1:2 htb rate {_FREE} quantum {FRAME}",
        *(
            f"filter add dev {device} parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff "
            f"match u16 {length} at 2 match u8 0x10 0x10 at 33 flowid 1:2"
            for length in _ACKNOWLEDGMENTS
        ),
    ]


def _filters(device: str, peer: ShapedPeer, address: str) -> list[str]:
    # The source port is at byte 20, and Linux assigns even ones to connecting sockets.
    return [
        f"filter add dev {device} parent 1: protocol ip prio 2 u32 {address} "
        f"match u16 {slot << 1:#06x} {(_STREAM_CLASSES - 1) << 1:#06x} at 20 flowid {minor}"
        for slot, minor in enumerate(peer.stream_classes)
    ]


def _set(verb: Literal["add", "change"], device: str, peer: ShapedPeer) -> list[str]:
    # The class of a dead path needs some rate; its queues take nothing.
    rate = max(peer.rate, FRAME * 8.0)
    parent, limit = ("1:", _own(rate)) if peer.local else ("1:1", _borrowed(rate))
    lines = [f"class {verb} dev {device} parent {parent} classid {peer.minor} htb {limit}"]
    for minor in peer.stream_classes:
        lines.append(f"class {verb} dev {device} parent {peer.minor} classid {minor} htb {_borrowed(rate)}")
        lines.append(f"qdisc {'add' if verb == 'add' else 'replace'} dev {device} parent {minor} {_queue(peer.rate)}")
    return lines


def _own(rate: float) -> str:
    return f"rate {_kbit(rate)} burst {_burst(rate)}b cburst {_burst(rate)}b quantum {FRAME}"


def _borrowed(rate: float) -> str:
    return f"rate {_OWN_RATE} ceil {_kbit(rate)} burst {2 * FRAME}b cburst {_burst(rate)}b quantum {FRAME}"


def _burst(rate: float) -> int:
    return max(int(rate * WIRE / 8 * _BURST_SECONDS), 4 * FRAME)


def _queue(rate: float) -> str:
    # Another kind of queue, for with one of the same kind the kernel keeps what waits.
    return f"bfifo limit {max(int(rate * WIRE / 8 * _QUEUE_SECONDS), _MIN_QUEUE)}b" if rate else "pfifo limit 0"


def _kbit(rate: float) -> str:
    return f"{max(1, round(rate * WIRE / 1000))}kbit"
