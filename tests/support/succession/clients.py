"""Clients: jobs submit requests and finish them at the leader, readers only read, from any controller."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from blast_api import ttypes
from blast_client.api.address import Address
from blast_client.api.freshness import Freshness, StaleAnswerError
from blast_controller.core.model.errors import NotLeaderError as CoreNotLeader
from tests.support.controller.linearizability import Operation
from tests.support.controller.modeled_etcd import UnansweredError
from tests.support.succession.history import Asked, Call, EventReceived, Finished, Looked, Reading, RefusedToFinish
from tests.support.succession.network import between
from tests.support.succession.room import Controller, Room
from tests.support.succession.scheduler import Process

STATE = ttypes.PartState
FINAL = {STATE.DONE, STATE.WITHDRAWN, STATE.EXPIRED, STATE.FAILED}
SIZE = 10**9
UNANSWERED: dict[str, Call] = {"submit": Asked(None), "finish": Finished(None)}
"""The possible effects of a call without an answer."""
NOT_LEADING = (ttypes.NotLeader, CoreNotLeader)
"""This one does not lead; another may be known to, by its `address`."""


class Client:
    """A client that calls one controller after the other. `histories` are of all clients, by key."""

    def __init__(self, room: Room, histories: Histories, name: str) -> None:
        self.room, self.histories, self.name = room, histories, name
        self.process = Process(name)
        self.connections: dict[Process, Any] = {}
        self.at = room.dice.number(0, len(room.controllers) - 1)
        self.is_stopping = False

    def start(self, work: Callable[[], None] | None = None) -> None:
        """Begin to work, on a thread of its own."""
        self.room.scheduler.spawn(self.process, work or self.run)

    def run(self) -> None:
        raise NotImplementedError

    def pause(self, low: float, high: float) -> None:
        """Let time pass."""
        scheduler = self.room.scheduler
        scheduler.wait(scheduler.now + between(self.room.dice, low, high))

    def ask(self, controller: Controller, method: str, *arguments: object) -> Any:
        """Call a controller. Raises UnansweredError, and the exceptions of the controller."""
        process = controller.process
        if process is None:
            self.pause(0.001, 0.002)
            raise UnansweredError("not started", is_surely_not_done=True)
        connection = self.connections.setdefault(process, self.room.connection())
        return self.room.call(controller, connection, method, *arguments)

    def move(self, address: str | None) -> None:
        """Move to the leader, if it is known, or to the next controller."""
        known = [one.number for one in self.room.controllers if one.address == address]
        self.at = known[0] if known else (self.at + 1) % len(self.room.controllers)

    def anywhere(self, key: str, method: str, to_call: Callable[[Any], Call], *arguments: object) -> Any:
        """Call controllers until the leader answers; every attempt is a call of the history."""
        while True:
            begin, controller = self.room.scheduler.now, self.room.controllers[self.at]
            try:
                answer = self.ask(controller, method, *arguments)
            except UnansweredError as fault:
                if not fault.is_surely_not_done:
                    self.histories.note(key, UNANSWERED.get(method), begin, math.inf)
                self.move(None)
            except NOT_LEADING as fault:
                self.move(fault.address)
            except (ttypes.Ended, ttypes.Rejected, ttypes.UnknownRequest) as refusal:
                self.histories.note(key, to_call(refusal), begin)
                return refusal
            else:
                stale = getattr(answer, "staleMs", None)
                # The answer of a standby: its state was current at some time in a recent interval.
                self.histories.note(key, to_call(answer), begin - (stale or 0) / 1000)
                if stale is None:
                    return answer
                self.move(None)
            self.pause(0.01, 0.2)


class Histories:
    """The calls by key; `faults` are errors that are visible without a history."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.of: defaultdict[str, list[Operation[Call]]] = defaultdict(list)
        self.faults: list[str] = []
        self.granted = 0

    def note(self, key: str, call: Call | None, begin: float, end: float | None = None) -> None:
        """Record the end of a call."""
        if call is not None:
            self.of[key].append(Operation(call, begin, self._room.scheduler.now if end is None else end))


class Job(Client):
    """A client that submits a request, uses its grant for a while, finishes it, and reads its status."""

    def run(self) -> None:
        """Run until the simulation ends it; complete a request that is in progress."""
        count = 0
        while not self.is_stopping:
            if self.room.is_frozen:
                self.pause(0.1, 0.2)
                continue
            count += 1
            self.once(f"{self.name}-{count}")
            self.pause(0.0, 0.5)
        self.is_done = True

    is_done = False
    holds: str | None = None

    def once(self, key: str) -> None:
        """Run one request from its submission to its end."""
        room = self.room
        hosts = sorted(room.fabric.hosts)
        sender = room.dice.pick(hosts)
        others = [host for host in hosts if host != sender]
        receivers = room.dice.some(others, 3) or [others[0]]
        request = ttypes.MulticastRequest(key, sender, receivers, SIZE)
        while isinstance(answer := self.anywhere(key, "submit", asked, request), ttypes.Rejected):
            self.pause(0.1, 0.5)
        if room.dice.rarely():
            self.anywhere(key, "submit", asked, request)
        while (reading := read(answer)) is not None and not reading.is_over and not reading.grants:
            self.pause(0.02, 0.3)
            answer = self.anywhere(key, "status", looked, key)
        if reading is not None and reading.grants:
            self.histories.granted += 1
            self.holds = key
            self.pause(0.05, 1.0)
            while room.is_frozen:
                self.pause(0.1, 0.2)
            self.holds = None
        self.finish(key)

    def finish(self, key: str) -> None:
        """Finish the request, and check that it has ended."""
        while True:
            answer = self.anywhere(key, "finish", finished, key, 0, None)
            if not isinstance(answer, ttypes.Rejected):
                was_over = not isinstance(answer, ttypes.UnknownRequest)
                break
            # The request has lost its grant and is pending again: it cannot be finished yet.
            self.pause(0.1, 0.5)
        answer = self.anywhere(key, "status", looked, key)
        reading = read(answer)
        if was_over and (reading is None or not reading.is_over):
            self.histories.faults.append(f"{key} was finished, and then it was {answer}")


class Reader(Client):
    """A client that reads requests, mostly from changing standbys: its readings never become older."""

    def __init__(self, room: Room, histories: Histories, name: str) -> None:
        super().__init__(room, histories, name)
        self.freshness = Freshness(lambda: room.scheduler.now)

    def run(self) -> None:
        """Run until the simulation ends it."""
        seen: dict[str, Reading] = {}
        while not self.is_stopping:
            self.pause(0.05, 0.4)
            keys = list(self.histories.of)[-6:]
            if not keys:
                continue
            key = self.room.dice.pick(keys)
            if self.room.dice.number(0, 2):
                self.look(key, seen)
            else:
                self.listen(key, seen[key].event if key in seen else 0)

    def listen(self, key: str, after: int) -> None:
        """Wait a moment for the next event, which only a leader sends."""
        begin = self.room.scheduler.now
        controller = self.room.dice.pick(self.room.controllers)
        try:
            event = self.ask(controller, "awaitEvent", key, after, 300)
        except (UnansweredError, *NOT_LEADING, ttypes.TimedOut, ttypes.UnknownRequest, ttypes.Ended):
            return
        self.histories.note(key, EventReceived(event.sequence), begin)

    def look(self, key: str, seen: dict[str, Reading]) -> None:
        """Ask one of them."""
        begin, known = self.room.scheduler.now, self.freshness.known
        controller = self.room.dice.pick(self.room.controllers)
        try:
            answer = self.ask(controller, "status", key)
        except (UnansweredError, *NOT_LEADING):
            return
        except ttypes.UnknownRequest:
            self.histories.note(key, Looked(None), begin)
            return
        stale = (answer.staleMs or 0) / 1000
        # The state was current at some time in a recent interval.
        self.histories.note(key, looked(answer), begin - stale)
        try:
            self.freshness.of(answer, known, Address(controller.address, 9090))
        except StaleAnswerError:
            # As the client library does: the next controller may know more.
            return
        reading = read(answer)
        assert reading is not None
        before = seen.get(key)
        if before is not None and (reading.event < before.event or (before.is_over and not reading.is_over)):
            self.histories.faults.append(
                f"{self.name} saw {before} of {key} and then {reading} "
                f"(entry {answer.journalSequence}, {answer.staleMs} ms) at {controller.address}"
            )
        seen[key] = reading


def read(answer: Any) -> Reading | None:
    """Return the reading in a status."""
    if not isinstance(answer, ttypes.RequestStatus):
        return None
    grants = [part.grant for part in answer.parts if part.grant is not None and part.state == STATE.ACTIVE]
    return Reading(
        answer.latestSequence,
        answer.state in FINAL,
        answer.state == STATE.DONE,
        tuple((grant.reservation, grant.groupAddress) for grant in grants),
    )


def asked(answer: Any) -> Call | None:
    """Return the answer as a call of the history."""
    return None if isinstance(answer, ttypes.Rejected) else Asked(read(answer))


def looked(answer: Any) -> Call | None:
    """Return the answer as a call of the history."""
    if isinstance(answer, ttypes.UnknownRequest):
        return Looked(None)
    return Looked(read(answer))


def finished(answer: Any) -> Call | None:
    """Return the answer as a call of the history: a refusal for another reason has changed nothing."""
    if isinstance(answer, ttypes.Ended):
        return RefusedToFinish()
    return None if isinstance(answer, ttypes.Rejected | ttypes.UnknownRequest) else Finished(read(answer))
