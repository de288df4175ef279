"""A runtime without a thread: every call runs at once on a core whose devices execute all commands immediately."""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future

from blast_controller.core.model.commands import Publish
from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import Event
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.runtime.runtime import CoreContext, PublishedState
from blast_controller.runtime.settling import run_into
from blast_controller.runtime.waiting import WaitingRoom
from tests.support.controller.core import World


class DirectRuntime:
    """The interface of `Runtime` that a handler needs; thread-safe. Waits have no timeout of their own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.core = world.core
        self.waiting = WaitingRoom()
        self.store_fault = None
        self._lock = threading.RLock()
        world.on_publish = self._publish
        world.connect_all()
        self._settle()

    @property
    def snapshot(self) -> Snapshot:
        return self.core.snapshot

    def check_leader(self) -> None:
        """Do nothing: a direct runtime is always the leader."""

    check_leader_now = check_leader

    def look(self) -> PublishedState:
        return PublishedState(self.core.snapshot, self.world.now)

    look_at_written = look
    has_just_written = False

    def handle(self, event: Event) -> None:
        self.world.handle(event)

    take = handle

    def when_decided(self, answer) -> Future:
        """Answer at once: every event is decided and published on arrival."""
        future = Future()
        try:
            future.set_result(answer())
        except RequestError as error:
            future.set_exception(error)
        return future

    when_published = when_decided

    def call(self, work) -> Future:
        outer = Future()
        self.call_for(None, outer, work)
        return outer

    def call_for(self, _account, outer, work) -> None:
        with self._lock:
            settle = run_into(outer, work, CoreContext(self))
            self._settle()
        settle()

    def _settle(self) -> None:
        while self.world.inbox or any(self.world.device(name).queue for name in self.world.devices):
            self.world.deliver()
            for name in self.world.devices:
                while self.world.device(name).queue:
                    self.world.work(name)

    def _publish(self, publish: Publish) -> None:
        self.waiting.notify(publish.request, publish.event, math.inf if publish.last else publish.event.sequence)
        self.waiting.serve()
