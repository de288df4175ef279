"""All hostile clients of one slice, in a process of their own, so that what they use of the processors can be told.

When it is ready it says so by a JSON line. A line on standard input begins all attacks; from then on a JSON line
tells now and again what each has done so far. At the next line on standard input it tells so for the last time and is
gone, with all its connections, as a process that crashes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
from collections import Counter
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

from child import tell

from blast_client import AsyncClient, TlsSettings
from soak.evil_tenant import EvilTenant
from soak.forger import Forger
from soak.garbage import Garbage
from soak.orders import orders
from soak.places import EVIL, EVIL_VIEWER
from soak.strangers import Strangers

ANSWER_SECONDS = 20.0
_TELL_SECONDS = 2.0


class Hostile:
    """The attacks of one `on`."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.tallies: dict[str, Counter[str]] = {}

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for attack in self._attacks():
                tasks.create_task(attack)

    def _attacks(self) -> Iterator[Coroutine[Any, Any, None]]:
        tenant = EvilTenant(lambda: self._client(EVIL), lambda: self._client(EVIL_VIEWER))
        yield tenant.block()
        for number, attack in enumerate(self._options.attacks):
            tally = self._tally(f"{attack} {number + 1}")
            match attack:
                case "flood":
                    yield Strangers(_address(self._options.controller), tally).flood()
                case "frames":
                    yield Strangers(_address(self._options.controller), tally).frames()
                case "vanish":
                    yield tenant.vanish(tally)
                case "extend":
                    yield tenant.extend(tally)
                case "view":
                    yield tenant.view(tally)
        hosts = {name: (int(pid), address) for name, pid, address in self._options.hosts}
        yield Forger(hosts, self._tally("forge")).run()
        agents = {(address, self._options.agent_port): pid for pid, address in hosts.values()}
        yield Garbage(_address(self._options.openflow), agents, self._tally("garbage")).run()

    def _tally(self, name: str) -> Counter[str]:
        return self.tallies.setdefault(name, Counter())

    def _client(self, name: str) -> AsyncClient:
        papers = self._options.papers
        token = (papers / f"{name}.token").read_text().strip()
        tls = TlsSettings(papers / "controller.pem")
        return AsyncClient(self._options.controller, ANSWER_SECONDS, tls=tls, token=token)


async def _serve(options: argparse.Namespace) -> None:
    told = orders()
    tell({"event": "ready"})
    await anext(told, None)
    hostile = Hostile(options)
    attacking = asyncio.create_task(hostile.run())
    end = asyncio.ensure_future(anext(told, None))
    while not end.done():
        await asyncio.wait([attacking, end], timeout=_TELL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if attacking.done():
            # An attack that fails by itself is our fault, not that of the attacked.
            attacking.result()
        tell({name: dict(tally) for name, tally in hostile.tallies.items()})
    # Who vanishes says no farewells.
    os._exit(0)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> None:
    """Attack when told to."""
    # Ctrl-C is for the soak, which then ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--controller", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--openflow", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--papers", type=Path, required=True, help="folder of certificate and tokens")
    parser.add_argument("--attacks", nargs="+", required=True)
    parser.add_argument("--agent-port", type=int, required=True)
    parser.add_argument("--hosts", type=json.loads, required=True, help="[[name, process id, address], …]")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
