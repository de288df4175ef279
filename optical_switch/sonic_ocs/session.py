"""A session to a SONiC switch, without the protocol: the tables, the listener and the end of the session."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from optical_switch.errors import DeviceBusyError, OpticalSwitchError, ProtocolError, UnreachableError
from optical_switch.model import (
    LOSS_ACCURACY_DB,
    Circuit,
    CircuitReading,
    LossReading,
    Port,
    PortDescription,
    PowerReading,
)
from optical_switch.session import BatchResult, Capabilities, Notice
from optical_switch.sonic_ocs.model import FACTORY_TABLE, PORT_CONFIG, check_circuit
from optical_switch.sonic_ocs.state import DeviceTables, TableChange, accuracies_in, labels_in

log = logging.getLogger(__name__)

T = TypeVar("T")

CHECK_SECONDS = 10.0
"""Time between two checks of a session: a switch that has failed reports as little as one at rest."""


class OcsSession(ABC):
    """A session, as `optical_switch.session.SwitchSession` describes it.

    The device reports every change of its tables, so readings come from here and cost no request.

    Parameters
    ----------
    name : str
        Name of the switch in the log.
    check_seconds : float
        Time between two checks of the connection.
    """

    def __init__(self, name: str, check_seconds: float = CHECK_SECONDS) -> None:
        self._name = name
        self._check_seconds = check_seconds
        self._tables = DeviceTables()
        self._listener: Callable[[Notice], None] | None = None
        self._closed = asyncio.Event()
        self._failure: OpticalSwitchError | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def capabilities(self) -> Capabilities:
        """The model has one transaction for everything, and shows its effect in its state."""
        return Capabilities(one_transaction=True, atomic=True, confirms=False, light="states", measures_loss=True)

    def subscribe(self, listener: Callable[[Notice], None]) -> None:
        """Have `listener` called with each change of a circuit, loss or port, and with failed ports at once."""
        self._listener = listener

    async def open(self) -> None:
        """Connect, log in and read the state."""
        try:
            await self._connect()
        except BaseException:
            await self.close()
            raise
        self._start(self._check_regularly)
        self._tasks.append(asyncio.create_task(self._read_accuracies()))
        self._report(self._tables.alarms())

    async def close(self) -> None:
        """End the session; circuits stay."""
        self._end(UnreachableError("the session was closed"))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._disconnect()

    async def wait_closed(self) -> str:
        """Wait until the session has ended, and return the reason."""
        await self._closed.wait()
        return str(self._failure)

    async def apply(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        """Remove circuits, then set others, in one transaction."""
        self._check_open()
        for circuit in (*deletes, *adds):
            check_circuit(circuit)
        if not deletes and not adds:
            return BatchResult()
        return await self._answer(self._change(deletes, adds))

    async def read_circuits(self) -> Sequence[CircuitReading]:
        """Return all cross-connects of the state."""
        self._check_open()
        return self._tables.circuits()

    async def read_losses(self) -> Sequence[LossReading]:
        """Return the loss of every circuit that the device measures and that has been connected."""
        self._check_open()
        return self._tables.losses()

    async def read_powers(self) -> Sequence[PowerReading]:
        """Return nothing: the model has no power meters."""
        self._check_open()
        return []

    async def read_ports(self) -> Sequence[PortDescription]:
        """Return both sides of all ports."""
        self._check_open()
        return self._tables.ports(await self._answer(self._labels()))

    # ------------------------------------------------------------------------------------- for the two protocols

    @abstractmethod
    async def _connect(self) -> None:
        """Connect, log in, and return when the tables are known."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Release connections; also after a failed `_connect`."""

    @abstractmethod
    async def _change(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        """Carry out a transaction that is not empty."""

    @abstractmethod
    async def _rows(self, table: str) -> Iterable[TableChange]:
        """Return the rows of a table. Raises OpticalSwitchError."""

    @abstractmethod
    async def _check(self) -> None:
        """Send a request that every device answers. Raises OpticalSwitchError."""

    def _start(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run `work` until the session ends, which happens when it ends or fails."""
        self._tasks.append(asyncio.create_task(self._guard(work)))

    async def _guard(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await work()
        except OpticalSwitchError as error:
            self._end(error)
        finally:
            self._end(UnreachableError("the switch ended the session"))

    async def _labels(self) -> Mapping[Port, str]:
        return labels_in(await self._rows(PORT_CONFIG))

    async def _read_accuracies(self) -> None:
        """Read the accuracies of the factory once: they never change, and a large switch has many."""
        try:
            accuracies = accuracies_in(await self._rows(FACTORY_TABLE))
        except OpticalSwitchError as error:
            text = "optical switch %s: the accuracy of losses cannot be read, and is taken as %g dB: %s"
            log.info(text, self._name, LOSS_ACCURACY_DB, error)
            return
        self._report(self._tables.set_accuracies(accuracies))

    async def _check_regularly(self) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            # A device that is busy answers.
            with suppress(DeviceBusyError):
                await self._check()

    async def _answer(self, work: Coroutine[None, None, T]) -> T:
        """Return the result of a request; the session ends if there is none."""
        try:
            return await work
        except (UnreachableError, ProtocolError) as error:
            self._end(error)
            raise

    def _take(self, changes: Iterable[TableChange], *, silent: bool = False) -> None:
        """Change the tables and report what follows; while the first state arrives nothing follows."""
        notices = self._tables.apply(changes)
        if not silent:
            self._report(notices)

    def _report(self, notices: Iterable[Notice]) -> None:
        if self._listener is not None:
            for notice in notices:
                self._listener(notice)

    def _end(self, failure: OpticalSwitchError) -> None:
        if self._failure is None:
            if not isinstance(failure, UnreachableError | ProtocolError):
                failure = UnreachableError(f"the switch ended the session: {failure}")
            self._failure = failure
            self._closed.set()

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
