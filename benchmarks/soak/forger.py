"""Datagrams of nobody's in the groups of transfers that run.

An ordinary process on a receiver's host can see which groups the host has joined (/proc/net/igmp), join them too, and
so learns session and sizes from the real datagrams. It then sends its own: from there, where the kernel hands them to
the agent beside it, and from every other host, where the ToRs' guards should stop all but those of the sender's host.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import socket
import struct
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from blast_transport.wire.datagram import HEADER
from mininet_topos.namespace import open_socket
from soak.readings import GROUPS

PORT = 5001
NEAR_PER_SECOND, FAR_PER_SECOND = 240, 10
_LOOK_SECONDS = 0.05
_QUIET_SECONDS = 1.0
_LARGEST = 1 << 16
_AHEAD = 64
_IP_MULTICAST_ALL = 49
_JOINED = re.compile(r"^\s+([0-9A-F]{8})\s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a real datagram tells."""

    session: int
    segment: int
    payload: int


class Forger:
    """Forges on `hosts`: name to (a process in its namespace, its address)."""

    def __init__(self, hosts: Mapping[str, tuple[int, str]], tally: Counter[str]) -> None:
        self._hosts, self._tally = hosts, tally
        self._chance = random.Random("soak/forger")
        self._sending: dict[str, socket.socket] = {}

    async def run(self) -> None:
        """Forge while there is something to forge, until cancelled."""
        self._sending = {host: _sender(*place) for host, place in self._hosts.items()}
        busy: dict[tuple[str, str], asyncio.Task[None]] = {}
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    for host, group in self._joined():
                        if (host, group) not in busy or busy[host, group].done():
                            busy[host, group] = tasks.create_task(self._forge(host, group))
                    await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for sock in self._sending.values():
                sock.close()

    def _joined(self) -> Iterator[tuple[str, str]]:
        for host, (pid, _) in self._hosts.items():
            for group in joined(Path(f"/proc/{pid}/net/igmp").read_text()):
                yield host, group

    async def _forge(self, host: str, group: str) -> None:
        """As long as the host is a member and real datagrams come."""
        pid, address = self._hosts[host]
        ours = {sock.getsockname() for sock in self._sending.values()}
        listening = _listener(pid, address, group)
        try:
            while (seen := await _heard(listening, ours)) is not None:
                self._tally["real datagrams heard"] += 1
                for _ in range(round(NEAR_PER_SECOND * _LOOK_SECONDS)):
                    self._send(host, group, seen)
                for other in self._hosts.keys() - {host}:
                    if self._chance.random() < FAR_PER_SECOND * _LOOK_SECONDS:
                        self._send(other, group, seen)
                await asyncio.sleep(_LOOK_SECONDS)
                _drain(listening)
        finally:
            listening.close()

    def _send(self, host: str, group: str, seen: Seen) -> None:
        try:
            self._sending[host].sendto(self._forged(seen), (group, PORT))
            self._tally["forged datagrams"] += 1
        except OSError:
            self._tally["not sent"] += 1

    def _forged(self, seen: Seen) -> bytes:
        """Mostly just ahead of the sender, sometimes behind it or far beyond the end."""
        ahead = self._chance.choice((1, 1, 1, -1)) * self._chance.randrange(1, _AHEAD)
        segment = max(0, seen.segment + ahead) if self._chance.random() < 0.9 else self._chance.randrange(1 << 20)
        return HEADER.pack(seen.session, 0, segment) + os.urandom(seen.payload)


def joined(igmp: str) -> list[str]:
    """The groups of ours in /proc/net/igmp, which writes addresses as hexadecimal numbers of the machine's order."""
    found = (IPv4Address(struct.pack("=I", int(text, 16))) for text in _JOINED.findall(igmp))
    return [str(group) for group in found if group in GROUPS]


async def _heard(listening: socket.socket, ours: Container[tuple[str, int]]) -> Seen | None:
    """The next datagram that is not `ours`; None when none comes any more."""
    loop = asyncio.get_running_loop()
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(_QUIET_SECONDS):
            while True:
                datagram, source = await loop.sock_recvfrom(listening, _LARGEST)
                if source not in ours and len(datagram) > HEADER.size:
                    session, _, segment = HEADER.unpack_from(datagram)
                    return Seen(session, segment, len(datagram) - HEADER.size)
    return None


def _drain(listening: socket.socket) -> None:
    """What waits is old."""
    try:
        while True:
            listening.recv(_LARGEST)
    except OSError:
        return


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
    sock.bind((group, PORT))
    membership = socket.inet_aton(group) + socket.inet_aton(address)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    return sock
