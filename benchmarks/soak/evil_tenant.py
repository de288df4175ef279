"""A tenant with good credentials and bad manners: who vanishes, who extends for ever, who looks at everything."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from thrift.Thrift import TException

from blast_api.ttypes import Extension, MulticastRequest
from blast_client import AsyncClient, ControllerUnreachable
from soak.pacing import ticks
from soak.places import HOSTILE, PLAN, hosts_of

WAITING, VANISH_AFTER_SECONDS, VANISH_EVERY_SECONDS = 500, 2.0, 5.0
EXTENDS_PER_SECOND = 50
LOOKS_PER_SECOND, PARKED_PER_SECOND = 20, 300
PARKED, PARKED_PER_CONNECTION = 16_000, 1000
PARKED_SECONDS = 600.0
HELD = PLAN.optical_ports_per_rack
NEVER = 1 << 40
"""A sequence number that no event of a request ever has."""
WAIT_SECONDS = 60.0
BLOCK_EVERY_SECONDS = 5.0
BLOCKING_BYTES = 10**10
"""So much that the light is not given back before the attack is over."""
PAGE = 1000

Connect = Callable[[], AsyncClient]


class EvilTenant:
    """All hostile clients of one tenant; `user` and `viewer` make connections with its tokens.

    Requests of its own hold all light between its two racks while they are at work: all others for it must wait.
    """

    def __init__(self, user: Connect, viewer: Connect) -> None:
        self._user, self._viewer = user, viewer
        self._sender, self._receiver = (hosts_of((rack,))[0] for rack in HOSTILE)
        self._numbers = itertools.count(1)
        self._waiting = ""
        """The request that waits for ever."""
        self._blocked = asyncio.Event()
        """The light is taken, and that request waits for it."""

    def _request(self, key: str, size: int = 1_000_000) -> MulticastRequest:
        """For the light that is taken."""
        return MulticastRequest(key, self._sender, [self._receiver], size)

    async def block(self) -> None:
        """Hold the light, and keep a request that waits behind it; all of them outlive this process."""
        async with self._user() as client:
            held = [self._request(f"evil-held-{number}", BLOCKING_BYTES) for number in range(HELD)]
            waits = self._request("evil-waits")
            async for _ in ticks(1 / BLOCK_EVERY_SECONDS):
                with suppress(TException, ControllerUnreachable):
                    for request in (*held, waits):
                        await client.submit(request)
                    self._waiting = waits.key
                    self._blocked.set()

    async def vanish(self, tally: Counter[str]) -> None:
        """Ask many times over one connection, wait a little, go away."""
        await self._blocked.wait()
        async with asyncio.TaskGroup() as rounds:
            async for _ in ticks(1 / VANISH_EVERY_SECONDS):
                rounds.create_task(self._vanish_once(tally))

    async def _vanish_once(self, tally: Counter[str]) -> None:
        async with asyncio.TaskGroup() as tasks:
            client = self._user()
            for _ in range(WAITING):
                request = self._request(f"evil-{os.getpid()}-{next(self._numbers)}")
                tasks.create_task(_counted(tally, "request", client.request(request, WAIT_SECONDS)))
            await asyncio.sleep(VANISH_AFTER_SECONDS)
            tally["went away"] += 1
            await client.close()

    async def extend(self, tally: Counter[str]) -> None:
        """Make the request that waits larger, a byte at a time."""
        await self._blocked.wait()
        async with self._user() as client, asyncio.TaskGroup() as tasks:
            async for _ in ticks(EXTENDS_PER_SECOND):
                extended = client.extend(self._waiting, Extension(addBytes=1))
                tasks.create_task(_counted(tally, "extend", extended))

    async def view(self, tally: Counter[str]) -> None:
        """Look at everything, and leave calls behind that stay."""
        await self._blocked.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look(tally))
            tasks.create_task(self._park(tally))

    async def _look(self, tally: Counter[str]) -> None:
        async with self._viewer() as client, asyncio.TaskGroup() as tasks:
            looks: itertools.cycle[tuple[str, Callable[[], Awaitable[object]]]] = itertools.cycle(
                (
                    ("fabric", client.fabric),
                    ("explain", lambda: client.explain(self._waiting)),
                    ("listRequests", lambda: _one_page(client)),
                )
            )
            async for _ in ticks(LOOKS_PER_SECOND):
                kind, look = next(looks)
                tasks.create_task(_counted(tally, kind, look()))

    async def _park(self, tally: Counter[str]) -> None:
        clients = [self._viewer() for _ in range(PARKED // PARKED_PER_CONNECTION)]
        parked = asyncio.Semaphore(PARKED)
        try:
            async with asyncio.TaskGroup() as tasks:
                count = itertools.count()
                async for _ in ticks(PARKED_PER_SECOND):
                    if not parked.locked():
                        client = clients[next(count) // PARKED_PER_CONNECTION % len(clients)]
                        waiting = client.await_event(self._waiting, NEVER, PARKED_SECONDS)
                        tasks.create_task(_within(parked, _counted(tally, "awaitEvent", waiting)))
        finally:
            for client in clients:
                await client.close()


async def _one_page(client: AsyncClient) -> None:
    requests = client.list_requests(page=PAGE)
    async for _ in requests:
        break
    await requests.aclose()  # type: ignore[attr-defined]


async def _within(places: asyncio.Semaphore, call: Awaitable[None]) -> None:
    async with places:
        await call


async def _counted(tally: Counter[str], kind: str, call: Awaitable[object]) -> None:
    tally[f"{kind} calls"] += 1
    try:
        await call
        tally[f"{kind} answered"] += 1
    except (TException, ControllerUnreachable) as error:
        code = getattr(error, "code", "")
        tally[f"{kind} {type(error).__name__}{code and f' {code}'}"] += 1
