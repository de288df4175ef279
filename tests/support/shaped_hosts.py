"""Hosts in network namespaces around a bridge, with rates for what each sends and takes, and from one to another.

Rates are htb classes: those of a host on its interface and on the bridge's towards it, those of a pair below that of
its sender, found by the address (u32). All names have a random part, so that several plants stand beside each other.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

_UNLIMITED = 10_000.0
_FRAME = 1514
_BURST_SECONDS = 1e-3
_QUEUE = ("bfifo", "limit", "1000000")


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@dataclass(frozen=True)
class Shape:
    """Rates on the wire in Mbit/s: (from, to) → rate, and what hosts send and take; what is not named has no limit."""

    links: Mapping[tuple[int, int], float] = field(default_factory=dict)
    out: Mapping[int, float] = field(default_factory=dict)
    into: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Plant:
    """Namespaces by number from 0 on."""

    prefix: str
    count: int

    def namespace(self, number: int) -> str:
        return f"{self.prefix}-h{number}"

    def address(self, number: int) -> str:
        return f"10.0.0.{number + 1}"

    def inside(self, number: int, *command: str) -> list[str]:
        """The command line that runs in a host."""
        return ["ip", "netns", "exec", self.namespace(number), *command]


@contextmanager
def plant(count: int, shape: Shape) -> Iterator[Plant]:
    """Hosts that stay until the end of the block. Needs root and iproute2."""
    made = Plant(f"bs{os.getpid()}-{secrets.token_hex(3)}", count)
    middle = f"{made.prefix}-middle"
    names = [middle, *map(made.namespace, range(count))]
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", middle, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", middle, "link", "set", "bridge", "up")
        for number in range(count):
            _wire(made, middle, number)
            _shape_device(made.namespace(number), "eth", shape.out.get(number, _UNLIMITED), _pairs(made, number, shape))
            _shape_device(middle, f"port{number}", shape.into.get(number, _UNLIMITED), {})
        yield made
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def _wire(made: Plant, middle: str, number: int) -> None:
    host, port = made.namespace(number), f"port{number}"
    run("ip", "link", "add", "eth", "netns", host, "type", "veth", "peer", "name", port, "netns", middle)
    run("ip", "-n", middle, "link", "set", port, "master", "bridge", "up")
    run("ip", "-n", host, "address", "add", f"{made.address(number)}/24", "dev", "eth")
    run("ip", "-n", host, "link", "set", "eth", "up")


def _pairs(made: Plant, number: int, shape: Shape) -> dict[str, float]:
    return {made.address(to): rate for (start, to), rate in shape.links.items() if start == number}


def _shape_device(namespace: str, device: str, whole: float, pairs: Mapping[str, float]) -> None:
    tc = ("tc", "-n", namespace)
    # What is promised to all classes together is no more than there is; each may borrow up to its own limit.
    promised = whole / (len(pairs) + 1)
    run(*tc, "qdisc", "add", "dev", device, "root", "handle", "1:", "htb", "default", "2")
    _add_class(tc, device, ("1:", "1:1"), whole, whole)
    _add_class(tc, device, ("1:1", "1:2"), promised, whole)
    run(*tc, "qdisc", "add", "dev", device, "parent", "1:2", *_QUEUE)
    for place, (address, rate) in enumerate(pairs.items(), start=16):
        name = f"1:{place:x}"
        _add_class(tc, device, ("1:1", name), min(rate, promised), min(rate, whole))
        run(*tc, "qdisc", "add", "dev", device, "parent", name, *_QUEUE)
        match = ("u32", "match", "ip", "dst", f"{address}/32", "flowid", name)
        run(*tc, "filter", "add", "dev", device, "parent", "1:", "protocol", "ip", "prio", "1", *match)


def _add_class(tc: tuple[str, ...], device: str, names: tuple[str, str], rate: float, ceil: float) -> None:
    parent, name = names
    burst = f"{max(2 * _FRAME, int(ceil * 1e6 / 8 * _BURST_SECONDS))}b"
    rates = ("rate", f"{round(rate * 1000)}kbit", "ceil", f"{round(ceil * 1000)}kbit")
    more = ("burst", burst, "cburst", burst, "quantum", str(_FRAME))
    run(*tc, "class", "add", "dev", device, "parent", parent, "classid", name, "htb", *rates, *more)
