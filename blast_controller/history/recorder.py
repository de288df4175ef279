"""The recorder of published state: notified on the deciding thread, it encodes and writes on its own.

No fault of a recording stops a controller: it is logged once, and recording restarts when possible.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from blast_controller.core.observer import Observer
from blast_controller.core.snapshot.changes import EVERYTHING, Changes
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.history.blocks import stamp_of
from blast_controller.history.encoder import Encoder
from blast_controller.history.errors import RecordingError
from blast_controller.history.mailbox import Mailbox
from blast_controller.history.moment import Moment
from blast_controller.history.retention import Keep
from blast_controller.history.writer import RunFacts, Writer

log = logging.getLogger(__name__)

INTERVAL = 0.5
"""Seconds between two flushes: the maximum loss when the process is killed."""
AGAIN = 30.0
"""Seconds after which recording is tried again."""
SEEN_EVERY = 10.0
"""Seconds after which it is noted that nothing has happened."""
MAX_WAITING = 4096
"""The limit of moments; further ones are merged with the latest."""
STARTED = "the controller has started to decide"


class Recorder(Observer):
    """An observer of the runtime that records, from `start` to `stop`.

    `release` and `instance` identify the recording's controller.
    """

    def __init__(self, path: Path, keep: Keep, release: str, instance: str) -> None:
        self.fault: str | None = None
        """Why nothing is recorded; None: it is, or has not begun."""
        self.bytes = 0
        """The size of the recording."""
        self._path, self._keep = path, keep
        self._release, self._instance = release, instance
        self._epoch = 0
        self._mailbox = Mailbox(MAX_WAITING, lambda: None)
        self._taken_at = time.monotonic()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._writer: Writer | None = None
        self._encoder = Encoder()
        self._latest: Moment | None = None
        self._reason = STARTED
        self._seen_at = self._again_at = 0.0

    @property
    def merged(self) -> int:
        """Return the number of moments merged with their predecessor."""
        return self._mailbox.merged

    @property
    def lag(self) -> float:
        """Return the maximum delay of recording in seconds."""
        return time.monotonic() - self._taken_at if len(self._mailbox) else 0.0

    def levels(self) -> dict[str, float]:
        """Return the levels for metrics."""
        return {
            "recording_bytes": self.bytes,
            "recording_lag_seconds": self.lag,
            "recording_paused": self.fault is not None,
        }

    def start(self, epoch: int) -> None:
        """Record from now on, for a controller that decides in this epoch."""
        self._epoch = epoch
        self._thread.start()

    def stop(self) -> None:
        """Write what is there and end. Without effect where it has not begun."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    # --------------------------------------------------------------------------------------------- observing

    def on_published(self, snapshot: Snapshot, changes: Changes) -> None:
        """Queue a moment. On a standby nothing is recorded; the leader records it."""
        if self._epoch:
            self._mailbox.put(Moment(snapshot, time.monotonic(), time.time(), changes))

    # --------------------------------------------------------------------------------------------- recording

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self._guarded(self._record)
        self._guarded(self._record)
        self._close()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except RecordingError as fault:
            self._pause(str(fault))
        except Exception as error:
            log.exception("a published moment could not be recorded")
            self._pause(f"the recorder failed ({type(error).__name__}): report this as a bug")

    def _pause(self, fault: str) -> None:
        if self.fault is None:
            log.error("the flight recorder pauses: %s", fault)
        self.fault = fault
        self._close()
        self._reason = f"recording had paused: {fault}"
        self._again_at = time.monotonic() + AGAIN

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _record(self) -> None:
        moments = self._mailbox.take()
        self._taken_at = time.monotonic()
        if moments:
            self._latest = moments[-1]
        if self._writer is None:
            self._begin()
        else:
            self._append(self._writer, moments)

    def _begin(self) -> None:
        if self._latest is None or time.monotonic() < self._again_at:
            return
        began = time.time()
        moment = self._latest._replace(changes=EVERYTHING)
        if self.fault is not None:
            # It was published before, and is what is shown now.
            moment = moment._replace(wall=began, now=time.monotonic())
        self._encoder = Encoder()
        self._encoder.encode(moment)
        writer = Writer(self._path, self._keep)
        try:
            facts = RunFacts(self._epoch, self._release, self._instance, self._reason)
            writer.begin(stamp_of(moment.now, moment.wall), self._encoder.rows, facts)
        except BaseException:
            writer.close()
            raise
        self._writer, self.bytes = writer, writer.bytes
        if self.fault is not None:
            log.warning("the flight recorder records again")
        self.fault = None

    def _append(self, writer: Writer, moments: list[Moment]) -> None:
        for moment in moments:
            if difference := self._encoder.encode(moment):
                writer.append(stamp_of(moment.now, moment.wall), difference)
        if moments or time.monotonic() - self._seen_at > SEEN_EVERY:
            writer.flush(round(time.time() * 1e6))
            self._seen_at = time.monotonic()
        self.bytes = writer.bytes
