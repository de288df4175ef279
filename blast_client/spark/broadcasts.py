"""`blast_broadcast(sc, value)`: one value for all executors, by Blast; and by Spark where that cannot be.

The way is decided when a job is submitted, as its tasks are pickled: hosts that came since get a copy first, and if one
of them cannot have it the value goes by Spark's own broadcast from then on. Tasks that were pickled before and run on a
host without a copy ask the driver (`desk`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

from blast_client.broadcasting import Outcome, settings_of_environment
from blast_client.spark.application import Registered, application_of
from blast_client.spark.cluster import check_context, executor_hosts, is_stopped, obstacle
from blast_client.spark.copies import Brought
from blast_client.spark.parcel import for_spark, packed, shown
from blast_client.spark.reasons import Reason, tell
from blast_client.spark.received import Destroyed, ReceivedBroadcast, ReceivedFromSpark
from blast_client.spark.settings import SparkSettings

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import Broadcast, SparkContext

T = TypeVar("T")


def blast_broadcast(
    sc: SparkContext, value: T, *, settings: SparkSettings | None = None, wait: bool = True
) -> BlastBroadcast[T]:
    """Bring `value` to every host with executors, by Blast; `.value` of what is returned has it, there and here.

    NumPy arrays, PyTorch tensors on the CPU, dicts of either by name, and bytes are sent as they lie in memory and
    mapped by executors: bytes as a read-only memoryview, everywhere. Anything else is pickled once. It must not change
    as long as it is in use. Where Blast cannot serve every host the value goes as `sc.broadcast` sends it, with a line
    in the log `blast_client.spark`; `.reason` says why.

    With `wait` all have it when the call returns; without, it is on its way, and executors that are earlier wait for
    it. Raises WrongArgument for what is no SparkContext, and for Spark Connect; WrongArgument and BadCredentials for
    settings; and what pickle raises for values that it cannot write.

    >>> weights = blast_broadcast(sc, array)
    >>> rows.map(lambda row: row @ weights.value).collect()
    """
    check_context(sc)
    settings = settings or SparkSettings()
    value = shown(value)
    found = obstacle(sc)
    if found is not None:
        return BlastBroadcast(sc, value, None, found)
    parcel = packed(value)
    if parcel.size < settings.threshold:
        return BlastBroadcast(sc, value, None, (Reason.SMALL, f"{parcel.size} bytes are below {settings.threshold}"))
    way = settings.round or settings_of_environment()
    try:
        registered = application_of(sc).register(parcel, settings, way)
    except OSError as error:
        return BlastBroadcast(sc, value, None, (Reason.NOT_SENT, f"executors could not ask this driver: {error}"))
    broadcast = BlastBroadcast(sc, value, registered)
    try:
        broadcast.begin()
        if wait:
            broadcast.wait()
    except BaseException:
        # Nobody else has it yet, who could end what has begun.
        broadcast.destroy(blocking=True)
        raise
    return broadcast


class BlastBroadcast(Generic[T]):
    """A value that all executors have, as pyspark's `Broadcast`; made by `blast_broadcast`. Thread-safe."""

    def __init__(
        self, sc: SparkContext, value: T, registered: Registered | None, found: tuple[Reason, str] | None = None
    ) -> None:
        self._sc, self._value, self._registered = sc, value, registered
        self._lock = threading.RLock()
        self._by_spark: Broadcast[T] | None = None
        self._coming: Future[Brought] | None = None
        self._handed_out = self._destroyed = False
        self.reason: Reason | None = None
        """Why it goes by Spark's own broadcast; None: it goes by Blast."""
        self.outcome: Outcome | None = None
        """Of the latest round in which it was sent."""
        if found is not None:
            self._turn_to_spark(*found)

    @property
    def value(self) -> T:
        """The value, as it was given."""
        return self._value

    def begin(self) -> None:
        """Send it to whoever lacks it, without waiting."""
        with self._lock:
            if self._registered is not None and self.reason is None:
                self._coming = self._registered.copies.bring()

    def wait(self) -> Outcome | None:
        """Wait until what was begun has ended; the outcome. Ctrl-C ends the sending. Raises WrongArgument."""
        coming = self._coming
        if coming is None or self._registered is None:
            return self.outcome
        try:
            brought = coming.result()
        except BaseException:
            # Ctrl-C as well: the light goes back, and who hears of it may end the process at once.
            self.destroy(blocking=True)
            raise
        with self._lock:
            self._coming = None
            self.outcome = brought.outcome or self.outcome
            if brought.reason is not None:
                self._turn_to_spark(brought.reason, brought.words)
        return self.outcome

    def unpersist(self, blocking: bool = False) -> None:
        """Free what executors' hosts keep of it. It comes again with the next job that uses it.

        Files become empty at once or, if not `blocking`, soon; their space goes when no process has them mapped.
        """
        with self._lock:
            self._check()
            work = self._registered.rest() if self._registered is not None else None
            if self._by_spark is not None:
                self._by_spark.unpersist(blocking)
        if work is not None and blocking:
            work.join()

    def destroy(self, blocking: bool = False) -> None:
        """Free it on executors' hosts and in the driver, for good. Tasks that still want it raise Destroyed."""
        with self._lock:
            if self._destroyed:
                return
            self._destroyed, registered, self._registered = True, self._registered, None
            work = registered.remove() if registered is not None else None
            if self._by_spark is not None and not is_stopped(self._sc):
                self._by_spark.destroy(blocking)
        if work is not None and blocking:
            work.join()

    @property
    def _jbroadcast(self) -> JavaObject:
        """What pyspark, and code of the JVM, ask of a broadcast: they know only Spark's own."""
        with self._lock:
            self._check()
            if self._by_spark is None:
                tell(Reason.JVM, f"{self._name} is wanted by the JVM, and is sent there by Spark's own broadcast")
                self._by_spark = self._sc.broadcast(for_spark(self._value))
            return self._by_spark._jbroadcast

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object]]:
        """For a job: what executors get instead of the value."""
        with self._lock:
            self._check()
            self._reach_everybody()
            if self.reason is not None:
                return ReceivedFromSpark, (self._by_spark,)
            assert self._registered is not None
            self._handed_out = True
            return ReceivedBroadcast, (self._registered.handle(),)

    def __repr__(self) -> str:
        return f"<{self._name} by {'Blast' if self.reason is None else 'Spark'}>"

    def _reach_everybody(self) -> None:
        """Hosts that came since the last job have it, or it goes by Spark from now on."""
        if self.reason is not None or self._registered is None:
            return
        if self._coming is not None and not self._coming.done():
            # It was not to be waited for.
            return
        self.wait()
        if self.reason is None and not executor_hosts(self._sc):
            self._turn_to_spark(Reason.NO_EXECUTORS, "there is no executor yet")
        if self.reason is None and self._registered.copies.lacking():
            self.begin()
            self.wait()

    def _turn_to_spark(self, reason: Reason, words: str) -> None:
        tell(reason, f"{self._name} goes by Spark's own broadcast: {words}")
        self.reason = reason
        if self._by_spark is None:
            self._by_spark = self._sc.broadcast(for_spark(self._value))
        # Tasks that have been told where it lies may be running.
        if self._registered is not None and not self._handed_out:
            self._registered.remove()
            self._registered = None

    @property
    def _name(self) -> str:
        return self._registered.copies.name if self._registered is not None else f"a {type(self._value).__name__}"

    def _check(self) -> None:
        if self._destroyed:
            raise Destroyed("this broadcast has been destroyed: make another")
        if is_stopped(self._sc):
            raise Destroyed("its SparkContext has been stopped, and this broadcast with it")
