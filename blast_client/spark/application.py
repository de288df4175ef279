"""Broadcasts of one SparkContext in the driver: their numbers, and the server from which executors fetch copies."""

from __future__ import annotations

import atexit
import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from blast_client.send.round import RoundSettings
from blast_client.spark.asking import DriverAddress
from blast_client.spark.cluster import driver_address, executor_hosts, is_stopped
from blast_client.spark.copies import Copies
from blast_client.spark.copy_server import CopyServer
from blast_client.spark.parcel import SparkParcel
from blast_client.spark.received import DestroyedError, Handle
from blast_client.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark import SparkContext

_EXIT_SECONDS = 3.0
"""Maximum time that the exit of the process waits for agents to truncate files."""


class SparkApplication:
    """The values that executors may request. Thread-safe."""

    def __init__(self, sc: SparkContext) -> None:
        self.id, self._sc = str(sc.applicationId), sc
        self._lock = threading.Lock()
        self._latest = 0
        self._all: dict[str, Registered] = {}
        self._server: CopyServer | None = None
        self._host, self._bind = driver_address(sc)

    @property
    def stopped(self) -> bool:
        """True if its SparkContext is stopped."""
        return is_stopped(self._sc)

    def register(self, parcel: SparkParcel, settings: SparkSettings, round_settings: RoundSettings) -> Registered:
        """Register a value, which executors may then request. Raises OSError if this driver cannot listen."""
        with self._lock:
            if self._server is None:
                self._server = CopyServer(self._bind, settings.port, self._copies_of)
            self._latest += 1
            # Applications of two clusters may have the same id.
            name = f"{self.id}/{self._latest}-{secrets.token_hex(4)}"
            copies = Copies(parcel, name, settings, round_settings, lambda: executor_hosts(self._sc))
            self._all[name] = Registered(self, self._latest, copies, settings.path)
            return self._all[name]

    def remove(self, name: str) -> None:
        """Unregister a value."""
        with self._lock:
            self._all.pop(name, None)

    def handle(self, one: Registered) -> Handle:
        """Return the handle of a value for executors. Raises DestroyedError."""
        with self._lock:
            if self._server is None or one.copies.name not in self._all:
                raise DestroyedError(
                    f"{one.copies.name} was destroyed, or its SparkContext stopped: broadcast it again"
                )
            one.resting = False
            parcel, living = one.copies.parcel, (other.number for other in self._all.values() if not other.resting)
            return Handle(
                application=self.id,
                number=one.number,
                name=one.copies.name,
                suffix=parcel.suffix,
                size=parcel.size,
                form=parcel.form,
                folder=one.folder,
                place=DriverAddress(self._host, self._server.port, self._server.token),
                living=tuple(sorted(living)),
                latest=self._latest,
            )

    def close(self) -> None:
        """Stop all transfers and free the copies on hosts, after the context has stopped or at exit."""
        with self._lock:
            everything, self._all = [*self._all.values()], {}
            server, self._server = self._server, None
        for one in everything:
            one.copies.stop()
        for one in everything:
            in_background(one.copies.forget())
        if server is not None:
            server.close()

    def _copies_of(self, name: str) -> Copies | None:
        with self._lock:
            one = self._all.get(name)
            return one.copies if one is not None else None


class Registered:
    """One value of an application; `resting` while executors should not keep it."""

    def __init__(self, application: SparkApplication, number: int, copies: Copies, folder: str | None) -> None:
        self._application = application
        self.number, self.copies, self.folder, self.resting = number, copies, folder, False

    def handle(self) -> Handle:
        """Return the handle for executors. Raises DestroyedError."""
        return self._application.handle(self)

    def rest(self) -> threading.Thread:
        """Free the copies on hosts; the next use sends the value again."""
        self.resting = True
        return in_background(self.copies.forget())

    def remove(self) -> threading.Thread:
        """Unregister the value and free its copies."""
        self._application.remove(self.copies.name)
        self.copies.stop()
        return self.rest()


def in_background(work: Callable[[], None]) -> threading.Thread:
    """Run a function in a thread, for which the exit of the process waits up to `_EXIT_SECONDS`."""

    def run() -> None:
        try:
            work()
        finally:
            _at_work.discard(threading.current_thread())

    thread = threading.Thread(target=run, name="blast-spark", daemon=True)
    _at_work.add(thread)
    thread.start()
    return thread


_at_work: set[threading.Thread] = set()
_applications: dict[str, SparkApplication] = {}
_finding = threading.Lock()


def application_of(sc: SparkContext) -> SparkApplication:
    """Return the application of a context, and close applications of stopped contexts."""
    with _finding:
        stopped = [_applications.pop(key) for key, one in list(_applications.items()) if one.stopped]
        key = str(sc.applicationId)
        if key not in _applications:
            _applications[key] = SparkApplication(sc)
        found = _applications[key]
    for one in stopped:
        one.close()
    return found


@atexit.register
def _close_all() -> None:
    with _finding:
        everything = [*_applications.values()]
        _applications.clear()
    for one in everything:
        one.close()
    give_up = time.monotonic() + _EXIT_SECONDS
    for thread in [*_at_work]:
        thread.join(max(0.0, give_up - time.monotonic()))
