"""`blast_broadcast(sc, value)`: one value for all executors over Blast, or over Spark's broadcast if Blast cannot.

The transport is chosen when a job is submitted and its tasks are pickled: new hosts get a copy first, and if one of
them cannot, Spark's broadcast carries the value from then on. Tasks that were pickled before and run on a host without
a copy request it from the driver (copy_server.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

from blast_client.send.broadcasting import Outcome, settings_of_environment
from blast_client.spark.application import Registered, application_of
from blast_client.spark.cluster import check_context, executor_hosts, is_stopped, obstacle
from blast_client.spark.copies import CopyRoundResult
from blast_client.spark.parcel import for_spark, packed, shown
from blast_client.spark.reasons import Reason, log_reason
from blast_client.spark.received import DestroyedError, ReceivedBroadcast, ReceivedFromSpark
from blast_client.spark.settings import SparkSettings

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import Broadcast, SparkContext

T = TypeVar("T")


def blast_broadcast(
    sc: SparkContext, value: T, *, settings: SparkSettings | None = None, wait: bool = True
) -> BlastBroadcast[T]:
    """Send a value to every host with executors.

    NumPy arrays, PyTorch tensors on the CPU, dicts of either by name, and bytes are sent without a copy, and executors
    map them into memory (bytes as a read-only memoryview). Other values are pickled once. If Blast cannot serve every
    host, Spark's broadcast carries the value, and the logger `blast_client.spark` logs the reason.

    Parameters
    ----------
    sc
        The SparkContext.
    value
        The value. Do not change it while it is in use.
    settings
        Settings. Default: `SparkSettings()`.
    wait
        True: return after all hosts have the value. False: return at once; executors wait for the value.

    Returns
    -------
    BlastBroadcast
        The broadcast; its `.value` is the value, in the driver and in tasks, and `.reason` the reason for Spark's
        broadcast, or None.

    Raises
    ------
    InvalidArgumentError
        `sc` is not a running SparkContext (Spark Connect has none), or a setting is invalid.
    CredentialsError
        A certificate, key or token cannot be used.

    Examples
    --------
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
    round_settings = settings.round or settings_of_environment()
    try:
        registered = application_of(sc).register(parcel, settings, round_settings)
    except OSError as error:
        return BlastBroadcast(sc, value, None, (Reason.NOT_SENT, f"executors cannot connect to this driver: {error}"))
    broadcast = BlastBroadcast(sc, value, registered)
    try:
        broadcast.begin()
        if wait:
            broadcast.wait()
    except BaseException:
        # The caller has no reference yet with which to stop the transfer.
        broadcast.destroy(blocking=True)
        raise
    return broadcast


class BlastBroadcast(Generic[T]):
    """A value for all executors, like pyspark's `Broadcast`; `blast_broadcast` creates it. Thread-safe."""

    def __init__(
        self, sc: SparkContext, value: T, registered: Registered | None, found: tuple[Reason, str] | None = None
    ) -> None:
        self._sc, self._value, self._registered = sc, value, registered
        self._lock = threading.RLock()
        self._by_spark: Broadcast[T] | None = None
        self._coming: Future[CopyRoundResult] | None = None
        self._handed_out = self._destroyed = False
        self.reason: Reason | None = None
        """Reason for the use of Spark's broadcast; None: Blast carries the value."""
        self.outcome: Outcome | None = None
        """Outcome of the latest round."""
        if found is not None:
            self._switch_to_spark(*found)

    @property
    def value(self) -> T:
        """The value."""
        return self._value

    def begin(self) -> None:
        """Start to send the value to hosts that lack it."""
        with self._lock:
            if self._registered is not None and self.reason is None:
                self._coming = self._registered.copies.bring()

    def wait(self) -> Outcome | None:
        """Wait for the current round and return its outcome. Ctrl-C stops it. Raises InvalidArgumentError."""
        coming = self._coming
        if coming is None or self._registered is None:
            return self.outcome
        try:
            brought = coming.result()
        except BaseException:
            # Also Ctrl-C: block until the request is withdrawn, since the process may exit next.
            self.destroy(blocking=True)
            raise
        with self._lock:
            self._coming = None
            self.outcome = brought.outcome or self.outcome
            if brought.reason is not None:
                self._switch_to_spark(brought.reason, brought.words)
        return self.outcome

    def unpersist(self, blocking: bool = False) -> None:
        """Free the copies on the hosts of executors; the next job that uses the value sends it again.

        Files are truncated at once or, unless `blocking`, soon; their space is free when no process maps them.
        """
        with self._lock:
            self._check()
            work = self._registered.rest() if self._registered is not None else None
            if self._by_spark is not None:
                self._by_spark.unpersist(blocking)
        if work is not None and blocking:
            work.join()

    def destroy(self, blocking: bool = False) -> None:
        """Free the value on the hosts of executors and in the driver. Tasks that use it later raise DestroyedError."""
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
        """Spark's own broadcast, for pyspark and code of the JVM."""
        with self._lock:
            self._check()
            if self._by_spark is None:
                log_reason(Reason.JVM, f"the JVM uses {self._name}, which Spark's broadcast carries there")
                self._by_spark = self._sc.broadcast(for_spark(self._value))
            return self._by_spark._jbroadcast

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object]]:
        """Return what executors unpickle."""
        with self._lock:
            self._check()
            self._reach_new_hosts()
            if self.reason is not None:
                return ReceivedFromSpark, (self._by_spark,)
            assert self._registered is not None
            self._handed_out = True
            return ReceivedBroadcast, (self._registered.handle(),)

    def __repr__(self) -> str:
        return f"<{self._name} by {'Blast' if self.reason is None else 'Spark'}>"

    def _reach_new_hosts(self) -> None:
        """Send the value to hosts that joined since the last job, or switch to Spark's broadcast."""
        if self.reason is not None or self._registered is None:
            return
        if self._coming is not None and not self._coming.done():
            # The caller chose not to wait.
            return
        self.wait()
        if self.reason is None and not executor_hosts(self._sc):
            self._switch_to_spark(Reason.NO_EXECUTORS, "there is no executor yet")
        if self.reason is None and self._registered.copies.lacking():
            self.begin()
            self.wait()

    def _switch_to_spark(self, reason: Reason, words: str) -> None:
        log_reason(reason, f"Spark's broadcast carries {self._name}: {words}")
        self.reason = reason
        if self._by_spark is None:
            self._by_spark = self._sc.broadcast(for_spark(self._value))
        # Running tasks may have a handle to the copies.
        if self._registered is not None and not self._handed_out:
            self._registered.remove()
            self._registered = None

    @property
    def _name(self) -> str:
        return self._registered.copies.name if self._registered is not None else f"a {type(self._value).__name__}"

    def _check(self) -> None:
        if self._destroyed:
            raise DestroyedError("this broadcast was destroyed: create another")
        if is_stopped(self._sc):
            raise DestroyedError("the SparkContext of this broadcast was stopped: create another with a running one")
