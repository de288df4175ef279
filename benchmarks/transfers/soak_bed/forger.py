"""Forged datagrams in the groups of running transfers.

An unprivileged process on a receiver's host can list the groups that the host has joined (/proc/net/igmp), join them
too, and learn the session from real datagrams. The forger then sends its own datagrams: from that host, whose kernel
delivers them to the agent, and from every other host, where the guard rules on the ToRs should drop them.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import socket
import struct
from collections import Counter
from collections.abc import Container, Mapping
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path

from benchmarks.transfers.soak_bed.comparison import GROUPS
from blast_transport.wire.datagram import HEADER
from mininet_topos.kernel.namespace import open_socket

_PORT = 5001
_NEAR_PER_SECOND, _FAR_PER_SECOND = 240, 10
_LOOK_SECONDS, _QUIET_SECONDS = 0.05, 1.0
_AHEAD_SEGMENTS = 64
_IP_MULTICAST_ALL = 49
_JOINED = re.compile(r"^\s+([0-9A-F]{8})\s", re.MULTILINE)

Seen = tuple[int, int, int]
"""Session, segment and payload bytes of a real datagram."""


class Forger:
    """A forger on `hosts`, which map a name to a process in its namespace and its address."""

    def __init__(self, hosts: Mapping[str, tuple[int, str]], tally: Counter[str]) -> None:
        self._hosts, self._tally = hosts, tally
        self._chance = random.Random("soak/forger")
        self._sending: dict[str, socket.socket] = {}

    async def run(self) -> None:
        """Forge datagrams in all running transfers, until canceled."""
        self._sending = {host: _sender(*place) for host, place in self._hosts.items()}
        busy: dict[tuple[str, str], asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            while True:
                for host, (pid, _) in self._hosts.items():
                    for group in joined(Path(f"/proc/{pid}/net/igmp").read_text()):
                        if (host, group) not in busy or busy[host, group].done():
                            busy[host, group] = tasks.create_task(self._forge(host, group))
                await asyncio.sleep(_LOOK_SECONDS)

    async def _forge(self, host: str, group: str) -> None:
        """Forge while the host is a member and real datagrams arrive."""
        ours = {sock.getsockname() for sock in self._sending.values()}
        with _listener(*self._hosts[host], group) as listening:
            while (seen := await _next_datagram(listening, ours)) is not None:
                self._tally["real datagrams received"] += 1
                for _ in range(round(_NEAR_PER_SECOND * _LOOK_SECONDS)):
                    self._send(host, group, seen)
                for other in self._hosts.keys() - {host}:
                    if self._chance.random() < _FAR_PER_SECOND * _LOOK_SECONDS:
                        self._send(other, group, seen)
                await asyncio.sleep(_LOOK_SECONDS)
                with suppress(OSError):
                    # Drop the datagrams that queued up during the pause.
                    while True:
                        listening.recv(1 << 16)

    def _send(self, host: str, group: str, seen: Seen) -> None:
        """Send a segment just ahead of the sender, sometimes one behind it or far beyond the end."""
        session, segment, payload = seen
        ahead = self._chance.choice((1, 1, 1, -1)) * self._chance.randrange(1, _AHEAD_SEGMENTS)
        forged = max(0, segment + ahead) if self._chance.random() < 0.9 else self._chance.randrange(1 << 20)
        try:
            self._sending[host].sendto(HEADER.pack(session, 0, forged) + os.urandom(payload), (group, _PORT))
            self._tally["forged datagrams"] += 1
        except OSError:
            self._tally["not sent"] += 1


def joined(igmp: str) -> list[str]:
    """Return our groups in /proc/net/igmp, which prints addresses as hexadecimal numbers in the machine's order."""
    found = (IPv4Address(struct.pack("=I", int(text, 16))) for text in _JOINED.findall(igmp))
    return [str(group) for group in found if group in GROUPS]


async def _next_datagram(listening: socket.socket, ours: Container[tuple[str, int]]) -> Seen | None:
    """Return the next datagram that is not `ours`, or None if none arrives in time."""
    loop = asyncio.get_running_loop()
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(_QUIET_SECONDS):
            while True:
                datagram, source = await loop.sock_recvfrom(listening, 1 << 16)
                if source not in ours and len(datagram) > HEADER.size:
                    session, _, segment = HEADER.unpack_from(datagram)
                    return session, segment, len(datagram) - HEADER.size
    return None


def _sender(pid: int, address: str) -> socket.socket:
    sock = open_socket(pid, socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    sock.bind((address, 0))
    return sock


def _listener(pid: int, address: str, group: str) -> socket.socket:
    sock = open_socket(pid, socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
    sock.bind((group, _PORT))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(address))
    return sock
