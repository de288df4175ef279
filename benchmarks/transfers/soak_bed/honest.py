"""The honest clients of the controller, in a separate process that prints one JSON line for each call.

    application  submits a request for a group of its racks, reads the status, finishes
    observer     asks for the fabric, a page of requests and a ping

Each client starts a round at a fixed rate. A round that is due while the one before still runs is left out, and its
calls count as not completed. The clients end with standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Awaitable, Sequence
from dataclasses import asdict
from pathlib import Path

from thrift.Thrift import TException

from benchmarks.control_plane.child import orders, print_json
from benchmarks.transfers.soak_bed.report import Call
from benchmarks.transfers.soak_bed.scenario import (
    APPLICATION_SECONDS,
    APPLICATIONS,
    HONEST_TENANTS,
    OBSERVER,
    OBSERVER_SECONDS,
    hosts_of,
)
from blast_api.ttypes import MulticastRequest
from blast_client import AsyncClient, ControllerUnreachableError, TlsSettings

_ANSWER_SECONDS, _GRANT_SECONDS, _HELD_SECONDS = 5.0, 10.0, 0.05
_BYTES = 100_000


async def _timed(kind: str, call: Awaitable[object]) -> bool:
    """Make a call and print its result; return whether it completed."""
    begun, fault = time.monotonic(), ""
    try:
        await call
    except (TException, ControllerUnreachableError) as error:
        fault = f"{type(error).__name__} {getattr(error, 'code', '') or ''}".strip()
    _report(kind, begun, time.monotonic() - begun, fault)
    return not fault


def _report(kind: str, at: float, seconds: float, fault: str) -> None:
    print_json(asdict(Call(kind, at, seconds, fault)))


class Application:
    """A client that submits requests and finishes them."""

    kinds = ("request", "status", "finish")
    period = APPLICATION_SECONDS

    def __init__(self, number: int) -> None:
        self._chance = random.Random(f"soak/application-{number}")
        self._hosts = hosts_of(APPLICATIONS)
        self._prefix, self._count = f"app-{os.getpid()}-{number}", 0
        self.identity = HONEST_TENANTS[number % len(HONEST_TENANTS)]

    async def round(self, client: AsyncClient) -> None:
        """Make one request, from submission to its end."""
        self._count += 1
        sender, *receivers = self._chance.sample(self._hosts, self._chance.randint(2, 3))
        request = MulticastRequest(f"{self._prefix}-{self._count}", sender, receivers, _BYTES)
        if not await _timed("request", client.request(request, _GRANT_SECONDS)):
            with contextlib.suppress(TException, ControllerUnreachableError):
                await client.withdraw(request.key)
            for kind in self.kinds[1:]:
                _report(kind, time.monotonic(), 0.0, "no grant")
            return
        await _timed("status", client.status(request.key))
        await asyncio.sleep(_HELD_SECONDS)
        await _timed("finish", client.finish(request.key))


class Observer:
    """A client that only reads."""

    kinds = ("fabric", "listRequests", "ping")
    period = OBSERVER_SECONDS
    identity = OBSERVER

    async def round(self, client: AsyncClient) -> None:
        """Read everything once."""
        await _timed("fabric", client.fabric())
        await _timed("listRequests", first_page(client, 20))
        await _timed("ping", client.ping())


async def first_page(client: AsyncClient, size: int) -> None:
    """Request one page of `listRequests`."""
    requests = client.list_requests(page=size)
    async for _ in requests:
        break
    await requests.aclose()  # type: ignore[attr-defined]


async def _live(one: Application | Observer, client: AsyncClient, due: float, ending: asyncio.Event) -> None:
    async with client:
        while not await _is_set_within(ending, due - time.monotonic()):
            await one.round(client)
            due += one.period
            while due < time.monotonic():
                for kind in one.kinds:
                    _report(kind, due, 0.0, "left out: the round before took too long")
                due += one.period


async def _is_set_within(ending: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ending.wait(), max(0.0, seconds))
    return ending.is_set()


async def _run(options: argparse.Namespace) -> None:
    ending = asyncio.Event()
    applications = [Application(number) for number in range(options.applications)]
    observers = [Observer() for _ in range(options.observers)]
    groups: Sequence[Sequence[Application | Observer]] = (applications, observers)
    async with asyncio.TaskGroup() as lives:
        for group in groups:
            for number, one in enumerate(group):
                due = time.monotonic() + one.period * number / len(group)
                lives.create_task(_live(one, client_of(options, one.identity, _ANSWER_SECONDS), due, ending))
        async for _ in orders():
            pass
        ending.set()


def client_of(options: argparse.Namespace, identity: str, answer_seconds: float) -> AsyncClient:
    """Return a client with the token of this identity."""
    token = (options.papers / f"{identity}.token").read_text().strip()
    tls = TlsSettings(options.papers / "controller.pem")
    return AsyncClient(options.controller, answer_seconds, tls=tls, token=token)


def parser(text: str | None) -> argparse.ArgumentParser:
    """Return the options that honest and hostile clients share."""
    # On Ctrl-C, the soak ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    result = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--controller", required=True, metavar="ADDRESS:PORT")
    result.add_argument("--papers", type=Path, required=True, help="folder of certificate and tokens")
    return result


def main() -> None:
    """Make calls until standard input ends."""
    options = parser(__doc__)
    options.add_argument("--applications", type=int, required=True)
    options.add_argument("--observers", type=int, required=True)
    asyncio.run(_run(options.parse_args()))


if __name__ == "__main__":
    main()
