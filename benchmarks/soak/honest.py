"""The honest clients of the controller, in a process of their own; one JSON line on standard output for each call.

    application  asks for light for a group of its racks, looks at its request, gives the light back
    observer     asks for the fabric, for the requests and for a sign of life

Each begins a round when one is due, at a fixed rate. A round that is due while the one before has not ended is left
out, and all of its calls count as not completed. When standard input ends they end their rounds, and that is all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Awaitable
from dataclasses import asdict
from pathlib import Path

from child import tell
from thrift.Thrift import TException

from blast_api.ttypes import MulticastRequest
from blast_client import AsyncClient, ControllerUnreachable, TlsSettings
from soak.latencies import Call
from soak.orders import orders
from soak.places import APPLICATIONS, HONEST_TENANTS, OBSERVER, hosts_of
from soak.roster import APPLICATION_SECONDS, OBSERVER_SECONDS

ANSWER_SECONDS = 5.0
GRANT_SECONDS = 10.0
HELD_SECONDS = 0.05
BYTES = 100_000
FEWEST, MOST = 2, 3
"""Hosts of a group, sender included."""


class Recorder:
    """Times calls and tells of each."""

    async def timed(self, kind: str, call: Awaitable[object]) -> bool:
        """Make a call; whether it was completed."""
        begun, fault = time.monotonic(), ""
        try:
            await call
        except (TException, ControllerUnreachable) as error:
            fault = f"{type(error).__name__} {getattr(error, 'code', '') or ''}".strip()
        self.note(Call(kind, begun, time.monotonic() - begun, fault))
        return not fault

    def note(self, call: Call) -> None:
        """Tell of a call."""
        tell(asdict(call))


class Application:
    """Asks for light and gives it back."""

    kinds = ("request", "status", "finish")

    def __init__(self, number: int, recorder: Recorder) -> None:
        self._chance = random.Random(f"soak/application-{number}")
        self._hosts = hosts_of(APPLICATIONS)
        self._prefix, self._count = f"app-{os.getpid()}-{number}", 0
        self.recorder = recorder

    async def round(self, client: AsyncClient) -> None:
        """One request, from asking to its end."""
        self._count += 1
        sender, *receivers = self._chance.sample(self._hosts, self._chance.randint(FEWEST, MOST))
        request = MulticastRequest(f"{self._prefix}-{self._count}", sender, receivers, BYTES)
        if not await self.recorder.timed("request", client.request(request, GRANT_SECONDS)):
            with contextlib.suppress(TException, ControllerUnreachable):
                await client.withdraw(request.key)
            for kind in self.kinds[1:]:
                self.recorder.note(Call(kind, time.monotonic(), 0.0, "no grant came"))
            return
        await self.recorder.timed("status", client.status(request.key))
        await asyncio.sleep(HELD_SECONDS)
        await self.recorder.timed("finish", client.finish(request.key))


class Observer:
    """Looks on."""

    kinds = ("fabric", "listRequests", "ping")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    async def round(self, client: AsyncClient) -> None:
        """One look at everything."""
        await self.recorder.timed("fabric", client.fabric())
        await self.recorder.timed("listRequests", _first_of_page(client))
        await self.recorder.timed("ping", client.ping())


async def _first_of_page(client: AsyncClient) -> None:
    requests = client.list_requests(page=20)
    async for _ in requests:
        break
    await requests.aclose()  # type: ignore[attr-defined]


async def _live(
    one: Application | Observer, client: AsyncClient, offset: float, period: float, ending: asyncio.Event
) -> None:
    due = time.monotonic() + offset
    async with client:
        while not await _told_within(ending, due - time.monotonic()):
            await one.round(client)
            due += period
            while due < time.monotonic():
                for kind in one.kinds:
                    one.recorder.note(Call(kind, due, 0.0, "left out: the round before took too long"))
                due += period


async def _told_within(ending: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ending.wait(), max(0.0, seconds))
    return ending.is_set()


async def _run(options: argparse.Namespace) -> None:
    recorder, ending = Recorder(), asyncio.Event()
    async with asyncio.TaskGroup() as lives:
        for number in range(options.applications):
            client = _client(options, HONEST_TENANTS[number % len(HONEST_TENANTS)])
            offset = APPLICATION_SECONDS * number / options.applications
            lives.create_task(_live(Application(number, recorder), client, offset, APPLICATION_SECONDS, ending))
        for number in range(options.observers):
            client, offset = _client(options, OBSERVER), OBSERVER_SECONDS * number / options.observers
            lives.create_task(_live(Observer(recorder), client, offset, OBSERVER_SECONDS, ending))
        lives.create_task(_end_of_orders(ending))


async def _end_of_orders(ending: asyncio.Event) -> None:
    async for _ in orders():
        pass
    ending.set()


def _client(options: argparse.Namespace, name: str) -> AsyncClient:
    token = (options.papers / f"{name}.token").read_text().strip()
    tls = TlsSettings(options.papers / "controller.pem")
    return AsyncClient(options.controller, ANSWER_SECONDS, tls=tls, token=token)


def main() -> None:
    """Call until told to end."""
    # Ctrl-C is for the soak, which then ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controller", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--papers", type=Path, required=True, help="folder of certificate and tokens")
    parser.add_argument("--applications", type=int, required=True)
    parser.add_argument("--observers", type=int, required=True)
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
