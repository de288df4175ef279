"""The controller's executor on one emulated switch, and the time of each of its batches."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Any, Self

from benchmarks.control_plane.drivers.switch_endpoints import TIMEOUT, SwitchEndpoint
from blast_controller.core.model.commands import CircuitChange, SetCircuits
from blast_controller.core.model.events import DeviceConnected, DeviceEvent, StepConfirmed, StepFailed
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from optical_switch.model import Circuit
from optical_switch.session import BatchResult, SwitchSession

ApplyBatch = Callable[[Sequence[Circuit], Sequence[Circuit]], Coroutine[Any, Any, BatchResult]]
SWITCH = SwitchId("ocs")
ANSWER_SECONDS = 60.0
"""A limit that only keeps a failed measurement from hanging."""


@dataclass
class BatchOutcome:
    """The outcome of changes that were handed in together.

    Parameters
    ----------
    seconds : float
        Time from the first `session.apply` to the last answer, both on the executor's thread.
    transactions : int
        Calls of `session.apply`.
    failures : list[str]
        Reasons of the changes that failed.
    """

    seconds: float = 0.0
    transactions: int = 0
    failures: list[str] = field(default_factory=list)


class ExecutorSteps:
    """An executor with one switch.

    Parameters
    ----------
    endpoint : SwitchEndpoint
        The switch.
    """

    def __init__(self, endpoint: SwitchEndpoint) -> None:
        self._access = endpoint.access()
        self._events: queue.SimpleQueue[tuple[float, DeviceEvent]] = queue.SimpleQueue()
        self._applied: list[float] = []
        """Times of the calls of `session.apply`."""
        settings = SwitchSettings(SWITCH, endpoint.driver, self._new_session, TIMEOUT)
        self._executor = OpticalExecutor([settings], self._note, self._fail)
        self._numbers = count(1)

    def __enter__(self) -> Self:
        """Connect to the switch."""
        self._executor.start()
        while not isinstance(self._next()[1], DeviceConnected):
            pass
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.stop()

    def connect(self, circuits: Iterable[Circuit]) -> BatchOutcome:
        """Set circuits in one command, each as a reservation of its own."""
        return self._carry_out(CircuitChange(next(self._numbers), 1, (), (_named(c),)) for c in circuits)

    def disconnect(self, circuits: Iterable[Circuit]) -> BatchOutcome:
        """Remove circuits in one command."""
        return self._carry_out(CircuitChange(next(self._numbers), 1, (_named(c),)) for c in circuits)

    def _carry_out(self, changes: Iterable[CircuitChange]) -> BatchOutcome:
        command = SetCircuits(SWITCH, tuple(changes))
        self._applied.clear()
        self._executor.apply(command)
        outcome, unanswered, ended = BatchOutcome(), len(command.changes), 0.0
        while unanswered:
            at, event = self._next()
            if isinstance(event, StepConfirmed | StepFailed):
                ended = at
                unanswered -= 1
            if isinstance(event, StepFailed):
                outcome.failures.append(event.reason)
        outcome.seconds, outcome.transactions = ended - self._applied[0], len(self._applied)
        return outcome

    def _next(self) -> tuple[float, DeviceEvent]:
        return self._events.get(timeout=ANSWER_SECONDS)

    def _note(self, event: DeviceEvent) -> None:
        self._events.put((time.perf_counter(), event))

    def _new_session(self) -> SwitchSession:
        """Return a session that notes the time of each transaction."""
        session = self._access.new_session()
        # The alternative is a subclass of each of four sessions.
        setattr(session, "apply", self._noting(session.apply))  # noqa: B010 - mypy lets no method be replaced
        return session

    def _noting(self, apply: ApplyBatch) -> ApplyBatch:
        def noted(deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> Coroutine[Any, Any, BatchResult]:
            self._applied.append(time.perf_counter())
            return apply(deletes, adds)

        return noted

    def _fail(self, error: BaseException) -> None:
        raise error


def _named(circuit: Circuit) -> CrossConnect:
    return CrossConnect(SWITCH, *circuit)
