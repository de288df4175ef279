"""All hostile clients of one slice, in a separate process.

The process prints `ready` as JSON; a line on standard input starts all attacks. It then prints the counts of each
attack periodically and at the next line on standard input, and exits at once with all its connections, like a process
that crashes.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import resource
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from thrift.Thrift import TException

from benchmarks.control_plane.child import orders, print_json
from benchmarks.transfers.soak_bed.forger import Forger
from benchmarks.transfers.soak_bed.honest import client_of, first_page, parser
from benchmarks.transfers.soak_bed.scenario import EVIL, EVIL_VIEWER, HOSTILE, PLAN, hosts_of
from blast_api.ttypes import Extension, MulticastRequest
from blast_client import AsyncClient, ControllerUnreachableError
from mininet_topos.kernel.namespace import open_socket

Address = tuple[str, int]
Attack = Coroutine[Any, Any, None]
Tally = Counter[str]

_FROM = itertools.cycle(("127.0.0.66", "127.0.0.67", "127.0.0.68", "127.0.0.69"))
"""Source addresses that no client and no ToR has, as if the attacks came from other machines."""
_NEVER = 1 << 40
"""A sequence number that no event of a request reaches."""


def _frame(content: bytes, length: int | None = None) -> bytes:
    return struct.pack("!i", len(content) if length is None else length) + content


def _login(token: bytes) -> bytes:
    """Return a complete call of `login` with a wrong token."""
    name = b"login"
    head = struct.pack("!Ii", 0x80010001, len(name)) + name + struct.pack("!i", 1)
    return _frame(head + struct.pack("!bhi", 11, 1, len(token)) + token + b"\0")


_FRAMES = (
    _frame(bytes((1 << 20) - 1), 1 << 20),
    _frame(b"\x80", 1000),
    _frame(bytes(1 << 16), 0x7FFFFFFF),
    _login(b"x" * 250_000) * 16,
)
"""Half a frame, one byte of a frame, the greatest length, and more calls than the controller can answer."""
_HELLO, _LONGEST = bytes.fromhex("0400000800000001"), bytes.fromhex("0400ffff00000001")
_GARBAGE = (os.urandom(2048), _HELLO[:5], _LONGEST + bytes(4096), _HELLO, b"\xff" * 4096, b"")
"""Noise, half a header, the greatest OpenFlow length, a hello and nothing else, the greatest agent length, silence."""


async def _ticks(per_second: float) -> AsyncIterator[None]:
    """Yield at a fixed rate; ticks that are more than a second late are skipped."""
    due = time.monotonic()
    while True:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        yield
        due = max(due + 1 / per_second, time.monotonic() - 1.0)


async def _visit(tally: Tally, where: str, seconds: float, payload: bytes, *address: Any, **options: Any) -> None:
    """Connect without credentials, send the payload, and stay until the peer closes or the time ends."""
    tally[f"{where}connections"] += 1
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(*address, **options)
            try:
                writer.write(payload)
                await writer.drain()
                await reader.read()
                tally[f"{where}closed by the peer"] += 1
            finally:
                writer.transport.abort()
    except TimeoutError:
        tally[f"{where}held to the end"] += 1
    except (OSError, EOFError):
        tally[f"{where}refused or reset"] += 1


def _any_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _flood(address: Address, tally: Tally) -> None:
    """Open connections, send nothing, and keep them open."""
    places, tls = asyncio.Semaphore(2000), itertools.cycle((_any_tls(), None, None))
    async with asyncio.TaskGroup() as tasks:
        async for _ in _ticks(30):
            if places.locked():
                tally["held back: too many open"] += 1
            else:
                visit = _visit(tally, "", 30.0, b"", *address, ssl=next(tls), local_addr=(next(_FROM), 0))
                tasks.create_task(_within(places, visit))


async def _send_invalid(payloads: Sequence[bytes], address: Address, visit: Callable[..., Attack]) -> None:
    """Send incomplete or invalid payloads, each on a new connection."""
    rotation = itertools.cycle(payloads)
    async with asyncio.TaskGroup() as tasks:
        async for _ in _ticks(5):
            tasks.create_task(visit(next(rotation), *address, local_addr=(next(_FROM), 0)))


async def _garbage(agents: Mapping[Address, int], tally: Tally) -> None:
    """Send garbage to agents, from a namespace that reaches them."""
    payloads, targets, loop = itertools.cycle(_GARBAGE), itertools.cycle(agents.items()), asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        async for _ in _ticks(2):
            address, pid = next(targets)
            sock = open_socket(pid, socket.AF_INET, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                await loop.sock_connect(sock, address)
            except OSError:
                sock.close()
                tally["agent refused"] += 1
            else:
                tasks.create_task(_visit(tally, "agent ", 10.0, next(payloads), sock=sock))


class EvilTenant:
    """Clients with valid tokens that disappear, extend requests without end, or read everything.

    Their requests hold all optical ports of the tenant's two racks, so that all further requests stay pending.
    """

    def __init__(self, client: Callable[[str], AsyncClient]) -> None:
        self._client, self._numbers = client, itertools.count(1)
        self._sender, self._receiver = (hosts_of((rack,))[0] for rack in HOSTILE)
        self._pending = "evil-waits"
        self._blocked = asyncio.Event()

    def _request(self, key: str, size: int = 1_000_000) -> MulticastRequest:
        return MulticastRequest(key, self._sender, [self._receiver], size)

    async def block(self) -> None:
        """Hold grants and keep one more request pending; all of them outlive this process."""
        held = [self._request(f"evil-held-{number}", 10**10) for number in range(PLAN.optical_ports_per_rack)]
        async with self._client(EVIL) as client:
            async for _ in _ticks(0.2):
                with suppress(TException, ControllerUnreachableError):
                    for request in (*held, self._request(self._pending)):
                        await client.submit(request)
                    self._blocked.set()

    async def vanish(self, tally: Tally) -> None:
        """Submit many requests on one connection, and close it soon after."""
        await self._blocked.wait()
        async with asyncio.TaskGroup() as rounds:
            async for _ in _ticks(0.2):
                rounds.create_task(self._vanish_once(tally))

    async def _vanish_once(self, tally: Tally) -> None:
        async with asyncio.TaskGroup() as tasks:
            client = self._client(EVIL)
            for _ in range(500):
                request = self._request(f"evil-{os.getpid()}-{next(self._numbers)}")
                tasks.create_task(_counted(tally, "request", client.request(request, 60.0)))
            await asyncio.sleep(2.0)
            tally["vanished"] += 1
            await client.close()

    async def extend(self, tally: Tally) -> None:
        """Extend the pending request, one byte at a time."""
        await self._blocked.wait()
        async with self._client(EVIL) as client, asyncio.TaskGroup() as tasks:
            async for _ in _ticks(50):
                tasks.create_task(_counted(tally, "extend", client.extend(self._pending, Extension(addBytes=1))))

    async def view(self, tally: Tally) -> None:
        """Read everything, and leave calls parked."""
        await self._blocked.wait()
        async with self._client(EVIL_VIEWER) as client, asyncio.TaskGroup() as tasks:
            looks: tuple[tuple[str, Callable[[], Awaitable[object]]], ...] = (
                ("fabric", client.fabric),
                ("explain", lambda: client.explain(self._pending)),
                ("listRequests", lambda: first_page(client, 1000)),
                *(("awaitEvent", lambda: client.await_event(self._pending, _NEVER, 60.0)),) * 12,
            )
            rotation = itertools.cycle(looks)
            async for _ in _ticks(100):
                kind, look = next(rotation)
                tasks.create_task(_counted(tally, kind, look()))


async def _within(places: asyncio.Semaphore, call: Attack) -> None:
    async with places:
        await call


async def _counted(tally: Tally, kind: str, call: Awaitable[object]) -> None:
    tally[f"{kind} calls"] += 1
    try:
        await call
        tally[f"{kind} answered"] += 1
    except (TException, ControllerUnreachableError) as error:
        tally[" ".join(filter(None, (kind, type(error).__name__, str(getattr(error, "code", "")))))] += 1


def _attacks(options: argparse.Namespace, tallies: dict[str, Tally]) -> Iterator[Attack]:
    controller, openflow = _address(options.controller), _address(options.openflow)
    tenant = EvilTenant(lambda identity: client_of(options, identity, 20.0))
    yield tenant.block()
    attacks: dict[str, Callable[[Tally], Attack]] = {
        "flood": partial(_flood, controller),
        "frames": lambda tally: _send_invalid(_FRAMES, controller, partial(_visit, tally, "", 30.0, ssl=_any_tls())),
        "vanish": tenant.vanish,
        "extend": tenant.extend,
        "view": tenant.view,
    }
    for number, name in enumerate(options.attacks, 1):
        yield attacks[name](tallies.setdefault(f"{name} {number}", Counter()))
    hosts = {name: (int(pid), address) for name, pid, address in options.hosts}
    yield Forger(hosts, tallies.setdefault("forge", Counter())).run()
    agents = {(address, options.agent_port): pid for pid, address in hosts.values()}
    garbage = tallies.setdefault("garbage", Counter())
    yield _garbage(agents, garbage)
    yield _send_invalid(_GARBAGE, openflow, partial(_visit, garbage, "OpenFlow ", 10.0))


async def _serve(options: argparse.Namespace) -> None:
    commands, tallies = orders(), dict[str, Tally]()
    print_json({"event": "ready"})
    await anext(commands, None)
    attacks = [asyncio.create_task(attack) for attack in _attacks(options, tallies)]
    end = asyncio.ensure_future(anext(commands, None))
    while not end.done():
        done, _ = await asyncio.wait([*attacks, end], timeout=2.0, return_when=asyncio.FIRST_COMPLETED)
        for one in done - {end}:
            # An attack that raises is a bug of this program.
            one.result()
        print_json({name: dict(tally) for name, tally in tallies.items()})
    os._exit(0)


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> None:
    """Attack on command of the parent process."""
    options = parser(__doc__)
    options.add_argument("--openflow", required=True, metavar="ADDRESS:PORT")
    options.add_argument("--attacks", nargs="+", required=True)
    options.add_argument("--agent-port", type=int, required=True)
    options.add_argument("--hosts", type=json.loads, required=True, help="[[name, process id, address], …]")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_serve(options.parse_args()))


if __name__ == "__main__":
    main()
