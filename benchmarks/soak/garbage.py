"""Garbage at ports that are not for it: the controller's for OpenFlow, and the agents'."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import socket
from collections import Counter
from collections.abc import Callable, Mapping

from mininet_topos.namespace import open_socket
from soak.pacing import ticks
from soak.strangers import FROM

OPENFLOW_PER_SECOND, AGENTS_PER_SECOND = 5, 2
HELD_SECONDS = 10.0
_HELLO = bytes.fromhex("04000008 00000001")
_LONGEST = bytes.fromhex("0400ffff 00000001")

_KINDS: tuple[Callable[[], bytes], ...] = (
    lambda: os.urandom(random.randrange(1, 4096)),
    lambda: _HELLO[:5],
    lambda: _LONGEST + bytes(4096),
    lambda: _HELLO,
    lambda: b"\xff" * 4096,
    lambda: b"",
)
"""Noise, half a header, the largest length of OpenFlow, a greeting and then silence, the largest length of an agent's
protocol, silence."""

Address = tuple[str, int]


class Garbage:
    """Throws it; `agents` from address to a process in the namespace of a host that reaches it."""

    def __init__(self, openflow: Address, agents: Mapping[Address, int], tally: Counter[str]) -> None:
        self._openflow, self._agents, self._tally = openflow, agents, tally
        self._kinds = itertools.cycle(_KINDS)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._at_openflow())
            tasks.create_task(self._at_agents())

    async def _at_openflow(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            async for _ in ticks(OPENFLOW_PER_SECOND):
                sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                sock.bind((FROM[0], 0))
                tasks.create_task(self._throw(sock, self._openflow, "OpenFlow"))

    async def _at_agents(self) -> None:
        agents = itertools.cycle(self._agents.items())
        async with asyncio.TaskGroup() as tasks:
            async for _ in ticks(AGENTS_PER_SECOND):
                address, pid = next(agents)
                sock = open_socket(pid, socket.AF_INET, socket.SOCK_STREAM)
                tasks.create_task(self._throw(sock, address, "agent"))

    async def _throw(self, sock: socket.socket, address: Address, where: str) -> None:
        self._tally[f"{where} connections"] += 1
        loop = asyncio.get_running_loop()
        try:
            sock.setblocking(False)
            async with asyncio.timeout(HELD_SECONDS):
                await loop.sock_connect(sock, address)
                await loop.sock_sendall(sock, next(self._kinds)())
                while await loop.sock_recv(sock, 1 << 16):
                    pass
            self._tally[f"{where} ended them"] += 1
        except TimeoutError:
            self._tally[f"{where} held to the end"] += 1
        except OSError:
            self._tally[f"{where} reset"] += 1
        finally:
            sock.close()
