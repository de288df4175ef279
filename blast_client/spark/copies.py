"""Copies of one value on hosts, which the driver sends in rounds.

A round serves all hosts with executors that have no copy when it begins; with multicast one receiver costs as much as
many. Requests during a round wait for the next one, so that there are at most two.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, replace

from blast_client.api.base_error import BlastError
from blast_client.send.broadcasting import Outcome, async_broadcast
from blast_client.send.receivers import Receiver
from blast_client.send.round import DeliveryRound, RoundSettings
from blast_client.spark.parcel import SparkParcel
from blast_client.spark.reasons import Reason
from blast_client.spark.settings import SparkSettings
from blast_transport.base.errors import TransportError
from blast_transport.session.settings import Destination
from blast_transport.store.sources.pieces import PiecesSource
from blast_transport.wire.transports import PIPELINE

Hosts = Callable[[], frozenset[str]]


@dataclass(frozen=True, slots=True)
class CopyRoundResult:
    """The result of a round: `reason` None if every host with executors has a copy, else the reason and its text."""

    reason: Reason | None = None
    words: str = ""
    outcome: Outcome | None = None


class Copies:
    """The copies of one value, with the name `name` in the agents' folder. Thread-safe."""

    def __init__(
        self, parcel: SparkParcel, name: str, settings: SparkSettings, round_settings: RoundSettings, hosts: Hosts
    ) -> None:
        self.parcel, self.name = parcel, name
        self._settings, self._round_settings, self._hosts = settings, round_settings, hosts
        self._have: dict[str, Receiver] = {}
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._waiting: Future[CopyRoundResult] | None = None
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Outcome]] | None = None
        self._over = False

    def lacking(self) -> frozenset[str]:
        """Return the hosts with executors that have no copy."""
        hosts = self._hosts()
        with self._lock:
            return hosts - self._have.keys()

    def bring(self) -> Future[CopyRoundResult]:
        """Schedule a round and return its future; callers before its begin share it."""
        with self._lock:
            if self._waiting is None:
                self._waiting = Future()
                threading.Thread(target=self._round, args=(self._waiting,), name="blast-spark", daemon=True).start()
            return self._waiting

    def lost_at(self, address: str) -> None:
        """Record that an executor at this IP address, with an agent on its host, found no copy."""
        with self._lock:
            known = dict(self._have)
        lost = [host for host, receiver in known.items() if address in _addresses(host, receiver[1])]
        with self._lock:
            for host in lost:
                self._have.pop(host, None)

    def forget(self) -> Callable[[], None]:
        """Forget all copies; return a function that truncates the files on hosts, as far as possible."""
        with self._lock:
            had, self._have = self._have, {}
        return lambda: self._empty(had)

    def stop(self) -> None:
        """Stop the running round, and start no other."""
        with self._lock:
            self._over = True
            if self._running is not None:
                loop, task = self._running
                # Raised if the loop has just closed.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(task.cancel)

    # ------------------------------------------------------------------------------------------------ one round

    def _round(self, future: Future[CopyRoundResult]) -> None:
        with self._sending:
            with self._lock:
                self._waiting = None
            try:
                future.set_result(self._brought())
            except BaseException as error:  # noqa: BLE001 - the future raises it
                future.set_exception(error)

    def _brought(self) -> CopyRoundResult:
        receivers, without = self._settings.receivers(self.lacking())
        if without:
            return CopyRoundResult(
                Reason.UNKNOWN_HOST, f"no agent is configured for the executors at {_first(without)}"
            )
        if not receivers:
            return CopyRoundResult()
        try:
            outcome = self._run(
                async_broadcast(
                    self.parcel.data,
                    dict.fromkeys(receivers.values()),
                    self.name,
                    folder=self._settings.folder,
                    settings=self._round_settings,
                )
            )
        except CancelledError:
            return CopyRoundResult(Reason.NOT_SENT, "the transfer was stopped")
        except BlastError as error:
            return CopyRoundResult(Reason.NOT_SENT, str(error))
        with self._lock:
            self._have |= {host: receiver for host, receiver in receivers.items() if receiver[0] in outcome.delivered}
        # Hosts whose executors have exited meanwhile do not count.
        failed = self.lacking() & receivers.keys()
        if not failed:
            return CopyRoundResult(outcome=outcome)
        reasons = [f"{host} ({outcome.failed.get(receivers[host][0], 'copy lost')})" for host in sorted(failed)]
        return CopyRoundResult(Reason.NOT_DELIVERED, f"not delivered to {_first(reasons)}", outcome)

    def _empty(self, had: Mapping[str, Receiver]) -> None:
        """Replace the files by empty ones; the space is free when no process maps them."""
        with self._sending:
            with self._lock:
                # Skip hosts that have a copy again.
                receivers = dict.fromkeys(receiver for host, receiver in had.items() if host not in self._have)
            if receivers:
                name = f"{self.name}{self.parcel.suffix}"
                _truncate(list(receivers), self._round_settings, name, self._settings.folder)

    def _run(self, work: Coroutine[object, object, Outcome]) -> Outcome:
        """Run a coroutine in an event loop of its own. Raises CancelledError after `stop`."""

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


def _truncate(receivers: list[Receiver], settings: RoundSettings, name: str, folder: str) -> None:
    """Send an empty file; hosts that do not answer keep their copies."""
    delivery = DeliveryRound(receivers, replace(settings, via=PIPELINE, controller=None))
    with suppress(TransportError, BlastError):
        asyncio.run(delivery.deliver(PiecesSource([]), Destination(name, folder=folder), lambda _, __: None))


def _addresses(*names: str) -> set[str]:
    found: set[str] = set()
    for name in names:
        with suppress(OSError):
            found |= {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
    return found


def _first(names: Iterable[str]) -> str:
    first, *others = names
    return f"{first}, and {len(others)} more hosts" if others else first
