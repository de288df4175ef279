"""Publisher that sends the newest version of a model to every worker of a fleet, including workers that start late.

    python publisher.py --model demo --releases releases --hosts hosts.txt            # until SIGTERM or Ctrl-C
    python publisher.py --model demo --releases releases --hosts hosts.txt --once     # exit status 0: all have it

To release version 17, move its file to releases/17.safetensors. Each line of hosts.txt names an agent and the worker on
the same host: `r2h1=10.0.0.2:9095 10.0.0.2:8080`. The publisher reads the file in every round and requests from each
worker its newest version. It therefore keeps no state about workers that restarted empty, failed or were added. One
broadcast goes to all workers without the newest version; a worker that failed last time gets a broadcast of its own,
after a pause, so that it delays no other. The publisher prints each broadcast as a JSON line.
docs/tutorials/first-application.md describes $BLAST_CONTROLLER, $BLAST_SECRET_FILE and the other variables.
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

QUERY_TIMEOUT = 1.0
"""Seconds for a worker's answer."""
FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0
"""Seconds before the next broadcast to a host that failed; doubled after each failure."""
_MAX_BYTES = 1 << 16


@dataclass(frozen=True)
class Host:
    """Host of the fleet: its `agent` as an argument of `broadcast`, and the HTTP address of its worker."""

    agent: str
    worker: tuple[str, int]

    @property
    def name(self) -> str:
        """Return the name of the host in the outcome of a broadcast."""
        name, equals, _ = self.agent.partition("=")
        return name if equals else name.rpartition(":")[0] or name


def read_hosts(path: Path) -> list[Host]:
    """Read the file of hosts. Raise OSError if it is not readable, ValueError if a line is invalid."""
    hosts = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            address, _, port = words[-1].rpartition(":")
            if len(words) != 2 or not address or not port.isdecimal():
                raise ValueError(f"{path}, line {number}: expected AGENT WORKER, like h2=10.0.0.2:9095 10.0.0.2:8080")
            hosts.append(Host(words[0], (address, int(port))))
    if len({host.name for host in hosts}) < len(hosts):
        raise ValueError(f"{path} contains a host twice; delete one of the lines")
    return hosts


async def version_at(host: Host) -> int | None:
    """Return the newest complete version at the worker; 0 if it has none, None if it does not answer."""
    response = b""
    try:
        async with asyncio.timeout(QUERY_TIMEOUT):
            reader, writer = await asyncio.open_connection(*host.worker)
            try:
                writer.write(b"GET /version HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n")
                while len(response) < _MAX_BYTES and (more := await reader.read(_MAX_BYTES)):
                    response += more
            finally:
                writer.close()
        return int(json.loads(response.partition(b"\r\n\r\n")[2])["here"])
    except (OSError, TimeoutError, ValueError, KeyError, TypeError):
        return None


@dataclass
class _Failure:
    """Failure of a host: `retry_at` in the loop's time; the next pause is twice this `pause`."""

    retry_at: float
    pause: float


@dataclass(frozen=True)
class _Query:
    """Query of a host, and the version that was `sending` to it at that time; 0: none."""

    answer: asyncio.Task[int | None]
    sending: int

    def lacks(self, newest: int) -> bool:
        """Return whether the host needs that version and was not receiving a later one than its own when queried."""
        has = self.answer.result()
        return has is not None and has < newest and self.sending <= has


class Publisher:
    """Concurrent broadcasts to the workers of a fleet; each host takes part in at most one that is not complete."""

    def __init__(self, model: str, releases: Path, hosts: Path, settings: RoundSettings) -> None:
        self._model, self._releases, self._file, self._settings = model, releases, hosts, settings
        self._hosts: list[Host] = read_hosts(hosts)
        self._under_way: dict[str, int] = {}
        self._failures: dict[str, _Failure] = {}
        self._pushes: set[asyncio.Task[None]] = set()
        self._queries: dict[Host, _Query] = {}
        self._silent: set[Host] = set()

    async def once(self) -> bool:
        """Send the newest version to all hosts without it, and return whether all have it afterwards.

        Raise OSError if a file is not readable, ValueError if there is no release.
        """
        if not released(self._releases):
            raise ValueError(f"{self._releases} contains no release; move a file to {self._releases}/1{SUFFIX}")
        await self.start_round()
        if self._pushes:
            await asyncio.gather(*self._pushes)
        return not self._failures and not self._silent

    async def run(self, pause: float) -> None:
        """Start a round every `pause` seconds. If cancelled, cancel the broadcasts, which releases their grants."""
        reported = ""
        try:
            while True:
                problem = ""
                try:
                    self._hosts = read_hosts(self._file)
                    await self.start_round()
                except (OSError, ValueError) as error:
                    problem = str(error)
                if problem and problem != reported:
                    report(problem=problem)
                reported = problem
                await asyncio.sleep(pause)
        finally:
            running = [*self._pushes, *(query.answer for query in self._queries.values())]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def start_round(self) -> None:
        """Query all workers, and start broadcasts to those without the newest version. Raise OSError."""
        versions = released(self._releases)
        if not versions:
            return
        newest = max(versions)
        answered = await self._answers()
        self._report_silent({host for host in self._hosts if host not in answered})
        self._forget_failures({host.name for host in self._hosts})
        lacking = [host for host, query in answered.items() if query.lacks(newest)]
        good = [host for host in lacking if host.name not in self._failures]
        retries = [[host] for host in lacking if host.name in self._failures and self._is_due(host)]
        for group in [good, *retries] if good else retries:
            self._under_way |= {host.name: newest for host in group}
            push = asyncio.create_task(self._push(newest, versions[newest], group))
            self._pushes.add(push)
            push.add_done_callback(self._pushes.discard)

    async def _answers(self) -> dict[Host, _Query]:
        """Return the answered queries. Do not wait for silent workers: their answers count in the next round."""
        done = {host: query for host, query in self._queries.items() if host in self._silent and query.answer.done()}
        running = {host: query for host, query in self._queries.items() if not query.answer.done()}
        self._queries = {host: running.get(host) or self._query(host) for host in self._hosts}
        for host in self._hosts:
            if host not in self._silent:
                done[host] = self._queries[host]
                await done[host].answer
        return {
            host: query for host, query in done.items() if host in self._queries and query.answer.result() is not None
        }

    def _query(self, host: Host) -> _Query:
        return _Query(asyncio.create_task(version_at(host)), self._under_way.get(host.name, 0))

    def _is_due(self, host: Host) -> bool:
        return asyncio.get_running_loop().time() >= self._failures[host.name].retry_at

    async def _push(self, version: int, file: Path, hosts: Sequence[Host]) -> None:
        names = [host.name for host in hosts]
        try:
            name = name_of(self._model, version) + SUFFIX
            outcome = await async_broadcast(file, [host.agent for host in hosts], name, settings=self._settings)
        except BlastError as error:
            failed = dict.fromkeys(names, str(error))
            report(version=version, delivered=[], failed=failed)
        else:
            failed = dict(outcome.failed)
            details = {
                "transports": outcome.transports,
                "no_optical_path": outcome.no_optical_path,
                "seconds": round(outcome.seconds, 3),
            }
            report(version=version, delivered=sorted(outcome.delivered), failed=failed, **details)
        finally:
            for name in names:
                if self._under_way.get(name) == version:
                    del self._under_way[name]
        self._record_failures(names, failed)

    def _record_failures(self, names: Iterable[str], failed: Iterable[str]) -> None:
        now = asyncio.get_running_loop().time()
        for name in names:
            before = self._failures.pop(name, None)
            if name in failed:
                pause = min(2 * before.pause, MAX_PAUSE) if before else FIRST_PAUSE
                self._failures[name] = _Failure(now + pause, pause)

    def _forget_failures(self, known: set[str]) -> None:
        for name in self._failures.keys() - known:
            del self._failures[name]

    def _report_silent(self, silent: set[Host]) -> None:
        if silent != self._silent:
            self._silent = silent
            report(silent=sorted(host.name for host in silent))


def report(**fields: object) -> None:
    """Print a JSON line."""
    print(json.dumps(fields), flush=True)


async def _run(publisher: Publisher, options: argparse.Namespace) -> int:
    if options.once:
        return 0 if await publisher.once() else 1
    running = asyncio.create_task(publisher.run(options.look))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    with suppress(asyncio.CancelledError):
        await running
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish, and return the exit status."""
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
    parser.add_argument("--model", required=True, type=model_name, help="name of the model, as at the workers")
    parser.add_argument(
        "--releases", required=True, type=Path, metavar="FOLDER", help="directory of the releases N.safetensors"
    )
    parser.add_argument(
        "--hosts", required=True, type=Path, metavar="FILE", help="file with a line AGENT WORKER per host"
    )
    parser.add_argument("--sender", metavar="HOST", help="controller's name for this host (default: the host name)")
    parser.add_argument("--once", action="store_true", help="send the newest version and exit")
    parser.add_argument(
        "--look", type=seconds, default=2.0, metavar="SECONDS", help="interval of the rounds (default: 2)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
