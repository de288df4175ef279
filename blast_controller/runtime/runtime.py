"""The single owner of the core.

One thread takes events in order, passes them to the core, and sends its commands to the devices and its results to
waiting clients. While a batch of changes is being written (`group_commit`), it handles the next one.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, TypeVar

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import (
    Announce,
    Command,
    Optimize,
    Publish,
    ReadDevice,
    SendProbe,
    SetCircuits,
    SetForwarding,
)
from blast_controller.core.model.errors import FabricError, NotLeaderError, RejectedError
from blast_controller.core.model.events import (
    DecisionTimed,
    DeviceDisconnected,
    Event,
    ExtendRequested,
    Optimized,
    RequestSubmitted,
    TimePassed,
)
from blast_controller.core.model.records import Record
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.observer import Observer
from blast_controller.core.snapshot.changes import EVERYTHING, NOTHING
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.runtime.drivers import ForwardingDriver, OpticalDriver, OptimizerDriver
from blast_controller.runtime.faults import action_errors
from blast_controller.runtime.group_commit import Batch, GroupCommit
from blast_controller.runtime.inbox import Inbox
from blast_controller.runtime.observing import Observers
from blast_controller.runtime.parked_future import ParkedFuture
from blast_controller.runtime.settling import run_into
from blast_controller.runtime.standby import Standby
from blast_controller.runtime.waiting import Wait, WaitingCaller, WaitingLimits, WaitingRoom
from blast_controller.store.errors import JournalError, LockLostError, StoreUsageError
from blast_controller.store.interface import Loaded, Store

T = TypeVar("T")

LARGEST_BATCH, LONGEST_BATCH = 256, 0.01
"""Pieces of work that are decided on together, and seconds after which none is added: others wait for them."""
MAX_UNWRITTEN = 256
"""Records that wait for a write under way; with more, the core waits, too: they are released in one turn."""
MAX_OPERATORS = 1024
"""The limit of clients that wait for an audit or a fiber check."""
WRITE_AGAIN = 1.0
LONGEST_SLEEP = 3600.0
"""Seconds; a queue rejects timeouts of centuries, which a client may request."""
log = logging.getLogger(__name__)


class PublishedState(NamedTuple):
    """The published state, with the time of the read on the core's clock.

    On a standby, or if leadership is uncertain, the state is at most `stale` seconds old. If several controllers share
    a journal, `sequence` is that of the latest entry included.
    """

    snapshot: Snapshot
    now: float
    stale: float | None = None
    sequence: int | None = None


class _Shown(NamedTuple):
    """The published state for readers in any thread, replaced atomically."""

    snapshot: Snapshot
    sequence: int | None = None


class CoreContext:
    """The runtime's thread, lent to one piece of work: the core to look at, and the means to change it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.core = runtime.core
        self.now = time.monotonic()

    def check_leader(self) -> None:
        """Raise NotLeaderError on a standby."""
        self._runtime.check_leader_now()

    @property
    def look(self) -> PublishedState:
        """Return the published state at the time of this turn.

        Raises NotLeaderError if another controller may have a newer one.
        """
        runtime = self._runtime
        return runtime.look_at_written() if runtime.has_just_written else runtime.look()

    @property
    def written(self) -> PublishedState:
        """Return the state as of the latest write, valid at that time even if there is another leader now."""
        return self._runtime.look_at_written()._replace(now=self.now)

    @property
    def snapshot(self) -> Snapshot:
        """Return the published snapshot: the core at the latest commit."""
        return self._runtime.snapshot

    def handle(self, event: Event) -> None:
        """Give the core an event and carry out its commands. Raises RequestError when the core refuses it."""
        self._runtime.handle(event)

    def take(self, event: Event) -> None:
        """Give the core an event that is decided on with all that has come together. Raises RequestError."""
        self._runtime.take(event)

    def check_place(self, caller: WaitingCaller) -> None:
        """Raise RejectedError, before anything is changed, if no place to wait is left."""
        self._runtime.waiting.check_place(caller)

    def wait(self, request: RequestKey, timeout: float, wait: Wait) -> Future[Any]:
        """Return the answer to the next matching event of a request, or a refusal after `timeout` seconds.

        Raises RejectedError if no place to wait is left.
        """
        return self._runtime.waiting.park(request, self.now + timeout, wait)

    def wait_announced(self, topic: Hashable, timeout: float, wait: Wait) -> Future[Any]:
        """Return the answer to the core's announcement of a topic. Raises RejectedError."""
        return self._runtime.announced.park(topic, self.now + timeout, wait)

    def when_decided(self, answer: Callable[[], T]) -> Future[T]:
        """Return the result of `answer` after all earlier events are decided and durable."""
        return self._runtime.when_decided(answer)

    def when_published(self, answer: Callable[[], T]) -> T | Future[T]:
        """Act like `when_decided`; while nothing can be written, use the previously published state."""
        return self._runtime.when_published(answer)


class Runtime:
    """Runs a core with real time, real devices and a store.

    Events that arrive together are handled together: one commit writes their changes, and only when that and all
    earlier ones are durable do devices receive commands and callers their answers. While the store cannot write,
    nothing leaves.
    """

    def __init__(
        self,
        core: Core,
        store: Store,
        fatal: Callable[[BaseException], None],
        places: WaitingLimits | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        """Create the runtime.

        `fatal` is called when the core's state is no longer reliable; `places` limit waiting clients.
        """
        self.core = core
        self._shown = _Shown(core.snapshot)
        self.waiting = WaitingRoom(places)
        self.announced = WaitingRoom(WaitingLimits(in_all=MAX_OPERATORS, of_one=MAX_OPERATORS))
        self.store_fault: str | None = None
        self.safe_mode: str | None = None
        """Why nothing is decided until an operator lets it go on; None: it decides."""
        self.standby: Standby | None = None
        """The source of the leader's state on a standby; None: this controller is the leader."""
        self.holds_leadership: Callable[[], bool] = lambda: True
        """Returns true while no other controller can be the leader."""
        self.sequence: Callable[[], int | None] = lambda: None
        """The latest entry that is durable, where several controllers share the journal."""
        self.optimizer: OptimizerDriver | None = None
        self._store = store
        self._fatal = fatal
        self._observers = Observers(observers)
        self._optical: OpticalDriver | None = None
        self._forwarding: ForwardingDriver | None = None
        self._open = Batch()
        """The results of the current batch of work; those of its decision may be missing."""
        self._journal = GroupCommit(self._commit, lambda: self._inbox.put_first(self._collect))
        self._write_again = self._commit_began = 0.0
        self._in_doubt_since: float | None = None
        self._undecided = self._abandoned = False
        self.has_just_written = False
        """True if a commit has just proved that there was no other leader before it (on the runtime's thread only)."""
        self._is_durable = False
        """True if the answer to the current piece of work is durable, or needs no write."""
        self._inbox: Inbox[Callable[[], None] | None] = Inbox()
        self._thread = threading.Thread(target=self._run, name="core", daemon=True)

    @property
    def snapshot(self) -> Snapshot:
        """Return the durable state for readers in any thread."""
        return self._shown.snapshot

    def start(self, optical: OpticalDriver, forwarding: ForwardingDriver, loaded: Loaded) -> None:
        """Take over what the store held, and start to handle events. Raises FabricError when it does not fit."""
        self._optical, self._forwarding = optical, forwarding
        self._take(self._taken_over(self.core, loaded))
        self._thread.start()

    def _taken_over(self, core: Core, loaded: Loaded) -> list[Command]:
        """Let a core that has seen nothing know, and let readers see, what was stored. Raises FabricError."""
        now = time.monotonic()
        core.load(loaded.records(), now)
        self._show_all_of(core, self.sequence())
        return core.begin(now)

    def _show_all_of(self, core: Core, sequence: int | None = None) -> None:
        """Let readers see what a core knows that was not shown before, up to this entry of the journal."""
        core.take_changes()
        self._shown = _Shown(core.snapshot, sequence)
        self._observers.on_published(core.snapshot, EVERYTHING)

    def _publish(self, batch: Batch) -> None:
        """Publish the durable state for readers."""
        if batch.snapshot is not None:
            self._shown = _Shown(batch.snapshot, self.sequence())
        if batch.changes != NOTHING:
            self._observers.on_published(self._shown.snapshot, batch.changes)

    def look(self) -> PublishedState:
        """Return the published state, for any thread.

        Raises NotLeaderError on a standby that has read nothing yet, and on a leader that may have lost leadership.
        """
        standby, shown = self.standby, self._shown
        stale = self._seconds_in_doubt() if standby is None else standby.age()
        if stale is None:
            # An answer without an age claims to be current: no other leader may have changed the state.
            self.check_leader()
        return PublishedState(shown.snapshot, time.monotonic(), stale, shown.sequence)

    def _seconds_in_doubt(self) -> float | None:
        """Return for how long the outcome of a write has been unknown; other controllers may see it already."""
        since = self._in_doubt_since
        return None if since is None else time.monotonic() - since

    def look_at_written(self) -> PublishedState:
        """Return the state as of the latest write, even if there is another leader now."""
        return PublishedState(self._shown.snapshot, time.monotonic(), None, self._shown.sequence)

    def enter_safe_mode(self, reason: str, loaded: Loaded) -> None:
        """Enter safe mode: show the state of the store and do nothing; no event and no time reaches the core."""
        self.safe_mode = reason
        now = time.monotonic()
        for device in list(self.core.view.away):
            self.core.take(DeviceDisconnected(device, "not checked while the controller is in safe mode"), now)
        self.core.load([], now)
        self._show_all_of(self.core)
        try:
            self.core.load(loaded.records(), now)
            self._show_all_of(self.core)
        except Exception:
            # The stored state may be the one that the core cannot handle; clients get a warning instead.
            log.exception("the journal's state could not be loaded for display")
            self.safe_mode = f"{reason} The journal's state could not be loaded, so no requests and trees are shown."
        self._thread.start()

    def become_standby(self, standby: Standby) -> None:
        """Show what `show` is given, and decide nothing until `go_on`."""
        self.standby = standby
        self._thread.start()

    def show(self, core: Core, sequence: int) -> None:
        """Let readers see what a core knows that has only been loaded, up to this entry of the journal.

        On the runtime's thread only.
        """
        if self.standby is not None:
            self.core = core
            self._show_all_of(core, sequence)

    def abandon(self) -> None:
        """Abandon the journal to another controller: failing writes are no fault any more."""
        self._abandoned = True

    def check_leader(self) -> None:
        """Raise NotLeaderError where another controller decides, or may by now."""
        if self.standby is not None:
            raise NotLeaderError(self.standby.leader())
        if self._abandoned or not self.holds_leadership():
            raise NotLeaderError(None)

    def check_leader_now(self) -> None:
        """Raise NotLeaderError like `check_leader`, for the current piece of work (on the runtime's thread only)."""
        try:
            self.check_leader()
        except NotLeaderError:
            self._is_durable = True
            raise

    @property
    def _decides(self) -> bool:
        return self.safe_mode is None and self.standby is None

    def go_on(self, core: Core, optical: OpticalDriver, forwarding: ForwardingDriver, loaded: Loaded) -> None:
        """Decide from now on, with a new core (on the runtime's thread only).

        Raises RejectedError if its fabric conflicts with the loaded light trees.
        """
        try:
            commands = self._taken_over(core, loaded)
        except FabricError as error:
            raise RejectedError(
                "bad_config", f"The configuration conflicts with active light trees: {error}."
            ) from error
        self.core, self.safe_mode, self.standby = core, None, None
        self._optical, self._forwarding = optical, forwarding
        self._take(commands)

    def stop(self) -> None:
        """Handle what is already there and end."""
        self._inbox.put_last(None)
        self._thread.join(timeout=5)
        self._journal.close()

    def post(self, event: Event) -> None:
        """Take an event from any thread; it is handled in order."""
        self._inbox.put(lambda: self._take_posted(event))

    def call(self, work: Callable[[CoreContext], T | Future[T]]) -> Future[T]:
        """Do `work` on the runtime's thread; the future has its result, or that of the future it returns.

        It is settled once everything that the work has changed is durable.
        """
        outer: Future[T] = Future()
        self._inbox.put(lambda: self._work_into(outer, work))
        return outer

    def call_for(self, account: Hashable, outer: Future[T], work: Callable[[CoreContext], T | Future[T]]) -> None:
        """Act like `call` with the caller's future, for an account: accounts take turns, and each has its own order."""
        self._inbox.put_for(account, lambda: self._work_into(outer, work))

    def handle(self, event: Event) -> None:
        """Give the core an event; its commands are carried out once they are durable (on the runtime's thread only).

        Raises RequestError when the core refuses it, or when nothing new may be taken because the store cannot write.
        """
        started = time.monotonic()
        self.take(event)
        self._conclude(started)

    def take(self, event: Event) -> None:
        """Give the core an event (on the runtime's thread only); one decision is made for all that come together.

        Raises RequestError as `handle` does.
        """
        self.check_leader_now()
        if self.safe_mode is not None:
            raise RejectedError("safe_mode", self.safe_mode)
        if self.store_fault is not None and isinstance(event, RequestSubmitted | ExtendRequested):
            self._is_durable = True
            raise RejectedError(
                "journal_unavailable", f"The controller's journal cannot be written: {self.store_fault}"
            )
        self._hand_in(event)

    def _hand_in(self, event: Event) -> None:
        with action_errors(type(event).__name__):
            self.core.take(event, time.monotonic())
        self._undecided = True
        self._observers.on_event(event, self.core)

    def when_published(self, answer: Callable[[], T]) -> T | Future[T]:
        """Act like `CoreContext.when_published` (on the runtime's thread only)."""
        if self.store_fault is None:
            return self.when_decided(answer)
        self._is_durable = True
        return answer()

    def when_decided(self, answer: Callable[[], T]) -> Future[T]:
        """Act like `CoreContext.when_decided` (on the runtime's thread only)."""
        future: Future[T] = ParkedFuture()

        def settle() -> None:
            run_into(future, lambda _: answer(), CoreContext(self))()

        self._open.results.append(settle)
        return future

    def _take_posted(self, event: Event) -> None:
        if self._decides:
            self._hand_in(event)

    def _conclude(self, started: float) -> None:
        self._undecided = False
        with action_errors("a decision"):
            commands = self.core.conclude(started)
        elapsed = time.monotonic() - started
        self._observers.on_decision(elapsed)
        if any(isinstance(command, SetForwarding) for command in commands):
            # Nothing follows from how long it took.
            self.core.take(DecisionTimed(elapsed), started)
        self._take(commands)

    def _take(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if isinstance(command, Record):
                self._open.records.append(command)
            else:
                self._open.results.append(partial(self._let_go, command))

    def _let_go(self, command: Command) -> None:
        self._carry_out(command)
        self._observers.on_command(command)

    def _carry_out(self, command: Command) -> None:
        match command:
            case SetCircuits() if self._optical:
                self._optical.apply(command)
            case SetForwarding() if self._forwarding:
                self._forwarding.apply(command)
            case ReadDevice(str() as switch) if self._optical:
                self._optical.read(switch)
            case ReadDevice(int() as datapath, True) if self._forwarding:
                self._forwarding.look(datapath)
            case ReadDevice(int() as datapath) if self._forwarding:
                self._forwarding.read(datapath)
            case Publish():
                number = math.inf if command.last else command.event.sequence
                self.waiting.notify(command.request, command.event, number)
            case SendProbe() if self._forwarding:
                self._forwarding.probe(command.datapath, command.port, command.payload)
            case Optimize() if self.optimizer:
                self.optimizer.ask(command)
            case Optimize():
                self.post(Optimized(command.revision))
            case Announce():
                self.announced.notify(command.topic, command.content)

    def _work_into(self, outer: Future[T], work: Callable[[CoreContext], T | Future[T]]) -> None:
        known, self._is_durable = len(self._open.records), False
        settle = run_into(outer, work, CoreContext(self))
        unchanged = len(self._open.records) == known and not self._undecided
        if self.store_fault is not None and unchanged and self._is_durable:
            settle()
        else:
            self._open.results.append(settle)

    def _run(self) -> None:
        try:
            while self._handle_batch():
                self._let_out()
        except BaseException as error:
            if self._abandoned:
                log.info("lost leadership; the next leader completes changes in progress: %s", error)
                return
            log.exception("the core failed")
            self._fatal(error)

    def _handle_batch(self) -> bool:
        """Handle the next piece of work with all that arrived with it; return false at the stop."""
        if self._journal.is_writing and len(self._journal.filling.records) > MAX_UNWRITTEN:
            self._collect()
            return True
        self._inbox.begin()
        work, left, end = self._next(), LARGEST_BATCH, math.inf
        while work is not None:
            work()
            left -= 1
            now = time.monotonic()
            # Start the limit here: deadlines come first, and calls are handled after them however long they take.
            end = min(end, now + LONGEST_BATCH)
            if not left or now > end:
                return True
            try:
                work = self._inbox.get_more()
            except queue.Empty:
                return True
        self._let_out()
        while self._journal.is_writing:
            self._collect()
        return False

    def _let_out(self) -> None:
        """Decide, write all changes, release durable results, and answer some of the notified waiters."""
        self._complete()
        # A release may lead to further results.
        while self._open or self._undecided:
            self._complete()
        self.waiting.serve()
        self.announced.serve()

    def _complete(self) -> None:
        """Decide on the current batch of work, and write its results or have them wait for the write under way."""
        if self._undecided:
            self._conclude(time.monotonic())
        if self._decides:
            self._open.snapshot, self._open.changes = self.core.snapshot, self.core.take_changes()
        self._journal.filling.add(self._open)
        self._open = Batch()
        self._write()

    def _write(self) -> None:
        """Write and release complete batches, unless a write is under way.

        It is written here if no work waits, since a switch of threads would take longer than it saves; otherwise beside
        the work.
        """
        journal = self._journal
        while not journal.is_writing and journal.filling and time.monotonic() >= self._write_again:
            if journal.filling.records and not self._inbox.is_empty:
                journal.begin()
                return
            try:
                self._release(journal.take())
            except JournalError as fault:
                self._note_fault(fault)

    def _collect(self) -> None:
        """Release the batch whose write has ended, and begin the next write."""
        if not self._journal.is_writing:
            return
        try:
            written = self._journal.collect()
        except JournalError as fault:
            self._note_fault(fault)
        else:
            self._release(written)
            self._write()

    def _commit(self, records: Sequence[Record]) -> None:
        self._commit_began = time.monotonic()
        self._store.commit(records, time.time())

    def _note_fault(self, fault: JournalError) -> None:
        if isinstance(fault, StoreUsageError | LockLostError):
            raise fault
        log.error("the journal cannot be written, no requests are admitted: %s", fault)
        self.store_fault, self._write_again = str(fault), time.monotonic() + WRITE_AGAIN
        if self._in_doubt_since is None and self.sequence() is not None:
            self._in_doubt_since = self._commit_began

    def _release(self, batch: Batch) -> None:
        """Publish the durable state, and send results to devices and clients; this may lead to further results."""
        if batch.records:
            if self.store_fault is not None:
                log.warning("the journal is writable again")
            self.store_fault = self._in_doubt_since = None
            self._write_again = 0.0
            self._observers.on_commit(len(batch.records), self._store.last_commit_seconds)
        self.has_just_written = bool(batch.records)
        try:
            self._publish(batch)
            for result in batch.results:
                result()
        finally:
            self.has_just_written = False

    def _next(self) -> Callable[[], None] | None:
        left = self._time_left()
        if left == 0:
            # Before more work, which may never end.
            return self._tick
        try:
            return self._inbox.get(timeout=left)
        except queue.Empty:
            return self._tick

    def _time_left(self) -> float | None:
        again = self._write_again if self.store_fault is not None else None
        timer = self.core.next_timer() if self._decides else None
        deadlines = (timer, self.waiting.next_deadline(), self.announced.next_deadline(), again)
        moments = [moment for moment in deadlines if moment is not None]
        return min(max(0.0, min(moments) - time.monotonic()), LONGEST_SLEEP) if moments else None

    def _tick(self) -> None:
        if self._decides:
            self._hand_in(TimePassed())
        self.waiting.expire(time.monotonic())
        self.announced.expire(time.monotonic())
