"""What the broadcasts of one SparkContext share in the driver: their numbers, and the desk where executors ask."""

from __future__ import annotations

import atexit
import secrets
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from blast_client.round import RoundSettings
from blast_client.spark.asking import Place
from blast_client.spark.cluster import driver_address, executor_hosts, is_stopped
from blast_client.spark.copies import Copies
from blast_client.spark.desk import Desk
from blast_client.spark.parcel import Parcel
from blast_client.spark.received import Destroyed, Handle
from blast_client.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark import SparkContext

_GOODBYE_SECONDS = 3.0
"""So long the end of the process waits for agents that are told to empty files."""


class Application:
    """The values that executors may still ask for. Thread-safe."""

    def __init__(self, sc: SparkContext) -> None:
        self.id, self._sc = str(sc.applicationId), sc
        self._lock = threading.Lock()
        self._latest = 0
        self._all: dict[str, Registered] = {}
        self._desk: Desk | None = None
        self._host, self._bind = driver_address(sc)

    @property
    def stopped(self) -> bool:
        """Its SparkContext is."""
        return is_stopped(self._sc)

    def register(self, parcel: Parcel, settings: SparkSettings, way: RoundSettings) -> Registered:
        """A value that executors may ask for from now on. Raises OSError where this driver cannot listen for them."""
        with self._lock:
            if self._desk is None:
                self._desk = Desk(self._bind, settings.port, self._copies_of)
            self._latest += 1
            # Applications of two clusters may have one id.
            name = f"{self.id}/{self._latest}-{secrets.token_hex(4)}"
            copies = Copies(parcel, name, settings, way, lambda: executor_hosts(self._sc))
            self._all[name] = Registered(self, self._latest, copies, settings.path)
            return self._all[name]

    def remove(self, name: str) -> None:
        """Nobody may ask for it any more."""
        with self._lock:
            self._all.pop(name, None)

    def handle(self, one: Registered) -> Handle:
        """What executors are told of it. Raises Destroyed."""
        with self._lock:
            if self._desk is None or one.copies.name not in self._all:
                raise Destroyed(f"{one.copies.name} has been destroyed, or its SparkContext stopped")
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
                place=Place(self._host, self._desk.port, self._desk.token),
                living=tuple(sorted(living)),
                latest=self._latest,
            )

    def close(self) -> None:
        """End what is under way, and free what hosts keep: for a context that has been stopped, or at the end."""
        with self._lock:
            everything, self._all = [*self._all.values()], {}
            desk, self._desk = self._desk, None
        for one in everything:
            one.copies.stop()
        for one in everything:
            in_background(one.copies.forget())
        if desk is not None:
            desk.close()

    def _copies_of(self, name: str) -> Copies | None:
        with self._lock:
            one = self._all.get(name)
            return one.copies if one is not None else None


class Registered:
    """One value of an application; `resting` while no executor is to keep it."""

    def __init__(self, application: Application, number: int, copies: Copies, folder: str | None) -> None:
        self._application = application
        self.number, self.copies, self.folder, self.resting = number, copies, folder, False

    def handle(self) -> Handle:
        """What executors are told. Raises Destroyed."""
        return self._application.handle(self)

    def rest(self) -> threading.Thread:
        """Free what hosts keep of it; it comes again when it is used again."""
        self.resting = True
        return in_background(self.copies.forget())

    def remove(self) -> threading.Thread:
        """Free it for good."""
        self._application.remove(self.copies.name)
        self.copies.stop()
        return self.rest()


def in_background(work: Callable[[], None]) -> threading.Thread:
    """Do it in a thread, which the end of the process waits for, but not for long."""

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
_applications: dict[str, Application] = {}
_finding = threading.Lock()


def application_of(sc: SparkContext) -> Application:
    """The one of this context; those whose contexts have been stopped are closed."""
    with _finding:
        stopped = [_applications.pop(key) for key, one in list(_applications.items()) if one.stopped]
        key = str(sc.applicationId)
        if key not in _applications:
            _applications[key] = Application(sc)
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
    give_up = time.monotonic() + _GOODBYE_SECONDS
    for thread in [*_at_work]:
        thread.join(max(0.0, give_up - time.monotonic()))
