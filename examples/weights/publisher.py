"""Brings the newest version of a model to every worker of a fleet, and to those that come late.

    python publisher.py --model demo --releases releases --hosts hosts.txt            # until it is told to end
    python publisher.py --model demo --releases releases --hosts hosts.txt --once     # exit status 0: all have it

To release version 17, move its file to releases/17.safetensors. A line of hosts.txt is an agent and the worker beside
it, `r2h1=10.0.0.2:9095 10.0.0.2:8080`; it is read at every look. What a worker has, it is asked: so whoever restarted
empty, failed or was added since gets it, and nothing has to be remembered. All that lack it get it by one broadcast;
those that failed last time, one by one and after a pause, beside it. Nobody waits for anybody. Each broadcast is told
as a JSON line. $BLAST_CONTROLLER, $BLAST_SECRET_FILE …: docs/application.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from versions import SUFFIX, model_name, name_of, released, seconds

from blast_client import BlastError, RoundSettings, async_broadcast, settings_of_environment

ASK_SECONDS = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a host that failed is tried again."""
_MAX_BYTES = 1 << 16


@dataclass(frozen=True)
class Host:
    """`agent` as `broadcast` takes it; where its worker is asked."""

    agent: str
    worker: tuple[str, int]

    @property
    def name(self) -> str:
        """As outcomes call it."""
        name, equals, _ = self.agent.partition("=")
        return name if equals else name.rpartition(":")[0] or name


def read_hosts(path: Path) -> list[Host]:
    """Raises OSError, ValueError."""
    hosts = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            address, _, port = words[-1].rpartition(":")
            if len(words) != 2 or not address or not port.isdecimal():
                raise ValueError(f"{path}, line {number}: write AGENT WORKER, like h2=10.0.0.2:9095 10.0.0.2:8080")
            hosts.append(Host(words[0], (address, int(port))))
    if len({host.name for host in hosts}) < len(hosts):
        raise ValueError(f"{path} names a host twice")
    return hosts


async def version_at(host: Host) -> int | None:
    """The newest that its worker sees whole; 0: none, None: no answer."""
    said = b""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            reader, writer = await asyncio.open_connection(*host.worker)
            try:
                writer.write(b"GET /version HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n")
                while len(said) < _MAX_BYTES and (more := await reader.read(_MAX_BYTES)):
                    said += more
            finally:
                writer.close()
        return int(json.loads(said.partition(b"\r\n\r\n")[2])["here"])
    except (OSError, TimeoutError, ValueError, KeyError, TypeError):
        return None


@dataclass
class _Failing:
    """A host that failed: not before `again` (the loop's time), and then after twice the `pause`."""

    again: float
    pause: float


@dataclass(frozen=True)
class _Ask:
    """A question to a host, and which version was `sending` to it then; 0: none."""

    answer: asyncio.Task[int | None]
    sending: int

    def lacks(self, newest: int) -> bool:
        """Whether it wants that version, and is not just being sent another one, or was when it was asked."""
        has = self.answer.result()
        return has is not None and has < newest and self.sending <= has


class Publisher:
    """Pushes that run beside each other; a host is in one that has not reached it yet, or in none."""

    def __init__(self, model: str, releases: Path, hosts: Path, settings: RoundSettings) -> None:
        self._model, self._releases, self._file, self._settings = model, releases, hosts, settings
        self._hosts: list[Host] = read_hosts(hosts)
        self._under_way: dict[str, int] = {}
        self._failing: dict[str, _Failing] = {}
        self._pushes: set[asyncio.Task[None]] = set()
        self._asked: dict[Host, _Ask] = {}
        self._silent: set[Host] = set()

    async def once(self) -> bool:
        """Push the newest to whoever lacks it; whether all have it then. Raises OSError, ValueError."""
        if not released(self._releases):
            raise ValueError(f"nothing is released: {self._releases} has no N{SUFFIX}")
        await self.look()
        if self._pushes:
            await asyncio.gather(*self._pushes)
        return not self._failing and not self._silent

    async def stay(self, pause: float) -> None:
        """Look again and again; cancelled, it gives up what is under way, and light goes back."""
        told = ""
        try:
            while True:
                problem = ""
                try:
                    self._hosts = read_hosts(self._file)
                    await self.look()
                except (OSError, ValueError) as error:
                    problem = str(error)
                if problem and problem != told:
                    tell(problem=problem)
                told = problem
                await asyncio.sleep(pause)
        finally:
            running = [*self._pushes, *(ask.answer for ask in self._asked.values())]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def look(self) -> None:
        """Ask everybody, and begin to push to who lacks the newest. Raises OSError."""
        versions = released(self._releases)
        if not versions:
            return
        newest = max(versions)
        answered = await self._answers()
        self._tell_silent({host for host in self._hosts if host not in answered})
        self._forget({host.name for host in self._hosts})
        lacking = [host for host, ask in answered.items() if ask.lacks(newest)]
        good = [host for host in lacking if host.name not in self._failing]
        again = [[host] for host in lacking if host.name in self._failing and self._is_due(host)]
        for group in [good, *again] if good else again:
            self._under_way |= {host.name: newest for host in group}
            push = asyncio.create_task(self._push(newest, versions[newest], group))
            self._pushes.add(push)
            push.add_done_callback(self._pushes.discard)

    async def _answers(self) -> dict[Host, _Ask]:
        """Of those that answer. Who was silent is asked again, and not waited for: what it says counts next time."""
        came = {host: ask for host, ask in self._asked.items() if host in self._silent and ask.answer.done()}
        running = {host: ask for host, ask in self._asked.items() if not ask.answer.done()}
        self._asked = {host: running.get(host) or self._ask(host) for host in self._hosts}
        for host in self._hosts:
            if host not in self._silent:
                came[host] = self._asked[host]
                await came[host].answer
        return {host: ask for host, ask in came.items() if host in self._asked and ask.answer.result() is not None}

    def _ask(self, host: Host) -> _Ask:
        return _Ask(asyncio.create_task(version_at(host)), self._under_way.get(host.name, 0))

    def _is_due(self, host: Host) -> bool:
        return asyncio.get_running_loop().time() >= self._failing[host.name].again

    async def _push(self, version: int, file: Path, hosts: Sequence[Host]) -> None:
        names = [host.name for host in hosts]
        try:
            name = name_of(self._model, version) + SUFFIX
            outcome = await async_broadcast(file, [host.agent for host in hosts], name, settings=self._settings)
        except BlastError as error:
            failed = dict.fromkeys(names, str(error))
            tell(version=version, delivered=[], failed=failed)
        else:
            failed = dict(outcome.failed)
            told = {
                "transports": outcome.transports,
                "no_light": outcome.no_light,
                "seconds": round(outcome.seconds, 3),
            }
            tell(version=version, delivered=sorted(outcome.delivered), failed=failed, **told)
        finally:
            for name in names:
                if self._under_way.get(name) == version:
                    del self._under_way[name]
        self._note(names, failed)

    def _note(self, names: Iterable[str], failed: Iterable[str]) -> None:
        now = asyncio.get_running_loop().time()
        for name in names:
            before = self._failing.pop(name, None)
            if name in failed:
                pause = min(2 * before.pause, LONGEST_PAUSE) if before else FIRST_PAUSE
                self._failing[name] = _Failing(now + pause, pause)

    def _forget(self, known: set[str]) -> None:
        for name in self._failing.keys() - known:
            del self._failing[name]

    def _tell_silent(self, silent: set[Host]) -> None:
        if silent != self._silent:
            self._silent = silent
            tell(silent=sorted(host.name for host in silent))


def tell(**news: object) -> None:
    """One JSON line."""
    print(json.dumps(news), flush=True)


async def _run(publisher: Publisher, options: argparse.Namespace) -> int:
    if options.once:
        return 0 if await publisher.once() else 1
    stay = asyncio.create_task(publisher.stay(options.look))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stay.cancel)
    with suppress(asyncio.CancelledError):
        await stay
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        settings = settings_of_environment()
        if options.sender is not None:
            settings = replace(settings, sender=options.sender)
        released(options.releases)
        return asyncio.run(_run(Publisher(options.model, options.releases, options.hosts, settings), options))
    except (OSError, ValueError, BlastError) as error:
        sys.stderr.write(f"publisher: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=model_name, help="its name, the same at the workers")
    parser.add_argument(
        "--releases", required=True, type=Path, metavar="FOLDER", help="N.safetensors are released here"
    )
    parser.add_argument("--hosts", required=True, type=Path, metavar="FILE", help="a line AGENT WORKER for each host")
    parser.add_argument("--sender", metavar="HOST", help="this host, as the controller knows it (default: its name)")
    parser.add_argument("--once", action="store_true", help="push the newest, and end")
    parser.add_argument("--look", type=seconds, default=2.0, metavar="SECONDS", help="between two looks (default: 2)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
