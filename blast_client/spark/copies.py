"""One value in the driver, and which hosts have a copy of it: brought in rounds, to whoever lacks it.

A round goes to all hosts with executors that have no copy when it begins; by light it costs the same for one and for
all. Who asks while one is under way waits for the next, so that there are never more than two.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, replace

from blast_client.base_error import BlastError
from blast_client.broadcasting import Outcome, async_broadcast
from blast_client.receivers import Receiver
from blast_client.round import Round, RoundSettings
from blast_client.spark.parcel import Parcel
from blast_client.spark.reasons import Reason
from blast_client.spark.settings import SparkSettings
from blast_transport.base.errors import TransportError
from blast_transport.session.settings import Destination
from blast_transport.store.pieces import PiecesSource
from blast_transport.wire.transports import PIPELINE

Hosts = Callable[[], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Brought:
    """What a round came to: None for a `reason` if every host with executors has it, else why not, in words."""

    reason: Reason | None = None
    words: str = ""
    outcome: Outcome | None = None


class Copies:
    """The copies of one value, called `name` in the agents' folder. Thread-safe."""

    def __init__(self, parcel: Parcel, name: str, settings: SparkSettings, way: RoundSettings, hosts: Hosts) -> None:
        self.parcel, self.name = parcel, name
        self._settings, self._way, self._hosts = settings, way, hosts
        self._have: dict[str, Receiver] = {}
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._waiting: Future[Brought] | None = None
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Outcome]] | None = None
        self._over = False

    def lacking(self) -> frozenset[str]:
        """The hosts with executors that have no copy."""
        hosts = self._hosts()
        with self._lock:
            return hosts - self._have.keys()

    def bring(self) -> Future[Brought]:
        """A round that has not begun yet, for whoever lacks it then; who waits for it may be many."""
        with self._lock:
            if self._waiting is None:
                self._waiting = Future()
                threading.Thread(target=self._round, args=(self._waiting,), name="blast-spark", daemon=True).start()
            return self._waiting

    def lost_at(self, address: str) -> None:
        """Somebody at this IP address, beside an agent, found no copy."""
        with self._lock:
            known = dict(self._have)
        gone = [host for host, receiver in known.items() if address in _addresses(host, receiver[1])]
        with self._lock:
            for host in gone:
                self._have.pop(host, None)

    def forget(self) -> Callable[[], None]:
        """No host has it any more; what is given empties the files there, as well as that can be done."""
        with self._lock:
            had, self._have = self._have, {}
        return lambda: self._empty(had)

    def stop(self) -> None:
        """End the round that is under way, and begin no other."""
        with self._lock:
            self._over = True
            if self._running is not None:
                loop, task = self._running
                # The loop may have ended a moment ago.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(task.cancel)

    # ------------------------------------------------------------------------------------------------ one round

    def _round(self, future: Future[Brought]) -> None:
        with self._sending:
            with self._lock:
                self._waiting = None
            try:
                future.set_result(self._brought())
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                future.set_exception(error)

    def _brought(self) -> Brought:
        receivers, without = self._settings.receivers(self.lacking())
        if without:
            return Brought(Reason.UNKNOWN_HOST, f"no agent is known beside the executors at {_first(without)}")
        if not receivers:
            return Brought()
        try:
            outcome = self._run(
                async_broadcast(
                    self.parcel.data,
                    dict.fromkeys(receivers.values()),
                    self.name,
                    folder=self._settings.folder,
                    settings=self._way,
                )
            )
        except CancelledError:
            return Brought(Reason.NOT_SENT, "it was stopped")
        except BlastError as error:
            return Brought(Reason.NOT_SENT, str(error))
        with self._lock:
            self._have |= {host: receiver for host, receiver in receivers.items() if receiver[0] in outcome.delivered}
        # Executors that went meanwhile are nobody's loss.
        failed = self.lacking() & receivers.keys()
        if not failed:
            return Brought(outcome=outcome)
        reasons = [f"{host} ({outcome.failed.get(receivers[host][0], 'it has gone')})" for host in sorted(failed)]
        return Brought(Reason.NOT_DELIVERED, f"it is not at {_first(reasons)}", outcome)

    def _empty(self, had: Mapping[str, Receiver]) -> None:
        """Replace the files by empty ones: the space goes with the last process that has mapped them."""
        with self._sending:
            with self._lock:
                # Others have it again by now.
                receivers = dict.fromkeys(receiver for host, receiver in had.items() if host not in self._have)
            if receivers:
                _send_nothing(list(receivers), self._way, f"{self.name}{self.parcel.suffix}", self._settings.folder)

    def _run(self, work: Coroutine[object, object, Outcome]) -> Outcome:
        """Here, in a loop of its own, until it is done or `stop` is called. Raises CancelledError then."""

        async def running() -> Outcome:
            with self._lock:
                if self._over:
                    work.close()
                    raise CancelledError
                task = asyncio.ensure_future(work)
                self._running = asyncio.get_running_loop(), task
            try:
                return await task
            except asyncio.CancelledError:
                raise CancelledError from None
            finally:
                with self._lock:
                    self._running = None

        return asyncio.run(running())


def _send_nothing(receivers: list[Receiver], way: RoundSettings, name: str, folder: str) -> None:
    """Best effort: who does not answer keeps what it has."""
    along = Round(receivers, replace(way, via=PIPELINE, controller=None))
    with suppress(TransportError, BlastError):
        asyncio.run(along.deliver(PiecesSource([]), Destination(name, folder=folder), lambda _, __: None))


def _addresses(*names: str) -> set[str]:
    found: set[str] = set()
    for name in names:
        with suppress(OSError):
            found |= {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
    return found


def _first(names: Iterable[str]) -> str:
    first, *others = names
    return f"{first}, and {len(others)} more hosts" if others else first
