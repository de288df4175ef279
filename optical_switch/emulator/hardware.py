"""An emulated switch without a protocol: circuits that take time to set, losses, optical power and faults.

Theory of operation. An agent has a `CrossbarChange` planned and set by `plan_and_set`, which sets one change after the
other. A plan is refused or valid as a whole. Setting the light paths (`apply`) is part of the switching time: it
starts early enough to return before that ends in most cases. The crossbar changes when `apply` returns; if it fails or
is cancelled, the crossbar stays as it was. A circuit whose mirrors or ports fail is not set and passes no light; it is
listed as failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.circuit_table import CircuitTable
from optical_switch.emulator.crossbar import Crossbar, RefusalError, SwitchRefusal
from optical_switch.emulator.faults import Faults, has_failed
from optical_switch.emulator.light import PowerModel, PowerMonitors, no_light
from optical_switch.emulator.timing import TIMER_GRAIN, Clock, DurationEstimate
from optical_switch.model import Circuit, CircuitReading, CircuitState, Port

FIRST_ESTIMATE = 0.003
"""Seconds that setting light paths is expected to take before any was measured: about what the lab's `tc` takes."""
PASS_LOSS_DB = 1.5
"""Loss of one way through the switch, in dB: a usual value in the data sheets of MEMS switches."""

Apply = Callable[[Sequence[Circuit], Sequence[Circuit]], Awaitable[None]]
"""`apply(removed, added)` sets the real light paths and returns when they are set. If it raises, none has changed."""


@dataclass
class OpticalHardware:
    """The state of an emulated switch.

    `owners` maps circuits that were set by hand to their owners; circuits in `locked` cannot be removed.

    Parameters
    ----------
    crossbar : Crossbar
        The circuits that pass light.
    apply : Apply
        Function that sets the real light paths.
    connect_seconds : float
        Time of a change that sets circuits.
    disconnect_seconds : float
        Time of a change that only removes circuits.
    faults : Faults
        Injected faults, which can be changed at any time.
    power : PowerModel
        Model of the power at the ports.
    clock : Clock
        Source of time.
    listeners : list[Callable[[], None]]
        Functions that are called after everything that can change a reading; after a fault only by `changed`.
    keeps_failed : bool
        True if a circuit that fails stays in the list. False: it is only refused.
    """

    crossbar: Crossbar
    apply: Apply
    connect_seconds: float
    disconnect_seconds: float = 0.0
    faults: Faults = field(default_factory=Faults)
    power: PowerModel = no_light
    clock: Clock = field(default_factory=Clock)
    listeners: list[Callable[[], None]] = field(default_factory=list)
    keeps_failed: bool = True

    def __post_init__(self) -> None:
        """Begin without circuits."""
        self.light = PowerMonitors(self.power, self.faults, self.clock.now)
        self._table = CircuitTable(self.crossbar, self.clock.now)
        self.owners, self.locked = self._table.owners, self._table.locked
        self._estimate = DurationEstimate(FIRST_ESTIMATE)
        self._changing = asyncio.Lock()
        self._setting: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------------------------------------ readings

    @property
    def circuits(self) -> tuple[Circuit, ...]:
        """The circuits that pass light, by input, as the list shows them: late if that fault is injected."""
        listed = self._table.listed(self.faults.late_list)
        return tuple(reading.circuit for reading in listed if reading.state is CircuitState.CONNECTED)

    @property
    def tuning(self) -> frozenset[Circuit]:
        """The circuits that are being set."""
        return self._table.tuning

    def readings(self) -> list[CircuitReading]:
        """Return all circuits with their states, by input: late if that fault is injected."""
        return [self._with_dead_ports(reading) for reading in self._table.listed(self.faults.late_list)]

    def powers(self) -> dict[Port, float]:
        """Return the power at each lit port, in dBm, as its meter shows it."""
        return self.light.powers(self.crossbar.circuits)

    def losses(self) -> dict[Circuit, float]:
        """Return the loss of each circuit that passes light, in dB."""
        passing = [circuit for circuit in self.crossbar.circuits if not self.faults.dead_ends(circuit)]
        return {circuit: PASS_LOSS_DB + self.faults.extra_loss_db.get(circuit, 0.0) for circuit in passing}

    def changed(self) -> None:
        """Call the listeners, after a fault that can change a reading."""
        for listener in list(self.listeners):
            listener()

    # ------------------------------------------------------------------------------------------------- changes

    @property
    def busy(self) -> bool:
        """True while a change is being set."""
        return self._changing.locked()

    def connecting(self, circuits: Sequence[Circuit], removed: Sequence[Circuit] = ()) -> CrossbarChange:
        """Plan to set circuits.

        Parameters
        ----------
        circuits : Sequence[Circuit]
            Circuits to set.
        removed : Sequence[Circuit]
            Circuits to remove first, in the same change.

        Returns
        -------
        CrossbarChange
            The change.

        Raises
        ------
        RefusalError
            If they cannot all be set, unless the fault `partial_bulk` is injected; if one of `removed` is locked or
            not set.
        """
        self.check_unlocked(removed)
        if removed:
            self._table.check_change(removed, ())
        seconds = self.connect_seconds + self.faults.settling_seconds(circuits)
        try:
            self._check(circuits, removed)
        except RefusalError as refusal:
            if not self.faults.partial_bulk:
                raise
            partly = RefusalError(refusal.reason, refusal.text, refusal.ports, partial=True)
            return CrossbarChange(tuple(removed), self._possible(circuits, removed), seconds, partly)
        return CrossbarChange(tuple(removed), tuple(circuits), seconds)

    def disconnecting(self, circuits: Sequence[Circuit]) -> CrossbarChange:
        """Return the change that removes `circuits`. Raises `RefusalError` if one is locked or not set."""
        self.check_unlocked(circuits)
        self._table.check_change(circuits, ())
        return CrossbarChange(tuple(circuits), (), self.disconnect_seconds)

    def check_unlocked(self, circuits: Iterable[Circuit]) -> None:
        """Raise `RefusalError` if one of `circuits` is locked."""
        self._table.check_unlocked(circuits)

    async def plan_and_set(
        self, plan: Callable[[], CrossbarChange], arrived: float | None = None
    ) -> asyncio.Task[None]:
        """Wait for the change in progress, plan the next one and start to set it.

        Parameters
        ----------
        plan : Callable[[], CrossbarChange]
            Function that returns the change, given the circuits at that time.
        arrived : float | None
            When the command arrived, by the clock. None: now.

        Returns
        -------
        asyncio.Task[None]
            The task that sets the change. It raises what `apply` raises, and `RefusalError` if a part of the command
            is refused or a circuit has failed.

        Raises
        ------
        RefusalError
            If `plan` raises it.
        """
        began = self.clock.now() if arrived is None else arrived
        waited = self._changing.locked()
        await self._changing.acquire()
        try:
            change = plan()
        except BaseException:
            self._changing.release()
            raise
        # The event loop itself keeps no task alive.
        self._setting = asyncio.create_task(self._set(change, self.clock.now() if waited else began))
        # A task that is cancelled before its first step runs none of its own code, so its end is handled outside it.
        self._setting.add_done_callback(partial(self._end, change))
        return self._setting

    async def connect_by_hand(self, circuit: Circuit, owner: str = "noc", *, locked: bool = False) -> None:
        """Set a circuit as an operator at the switch would. Raises `RefusalError` if it cannot be set."""
        async with self._changing:
            self._table.check_change((), (circuit,))
            for port, cause in self.faults.failing((circuit,)).values():
                raise RefusalError(SwitchRefusal.FAILED, cause, (port,))
            await self.apply((), (circuit,))
            self._table.change((), (circuit,))
            self.owners[circuit] = owner
            if locked:
                self.locked.add(circuit)
        self.changed()

    async def reset(self) -> None:
        """Lose all circuits, as at a power cycle."""
        async with self._changing:
            circuits = self.crossbar.circuits
            await self.apply(circuits, ())
            self._table.change((*circuits, *self._table.failed), ())
        self.changed()

    async def _set(self, change: CrossbarChange, began: float) -> None:
        """Set the light paths within the switching time."""
        deadline = began + change.seconds
        failing = self.faults.failing(change.added)
        if change.removed or change.added:
            await self._move(change, failing, deadline)
        await self.clock.until(deadline)
        if change.refusal is not None:
            raise change.refusal
        for _, cause in failing.values():
            done_in_part = bool(change.removed) or len(failing) < len(change.added)
            ports = [port for port, _ in failing.values()]
            raise RefusalError(SwitchRefusal.FAILED, cause, ports, partial=done_in_part)

    async def _move(self, change: CrossbarChange, failing: dict[Circuit, tuple[Port, str]], deadline: float) -> None:
        removed = self._table.lit(change.removed)
        added = [circuit for circuit in change.added if circuit not in failing]
        # Before the light paths, which must never differ from the crossbar.
        self._table.check_change(removed, added)
        if change.added:
            self._table.begin(change.added)
            self.changed()
        early = deadline - self._estimate.seconds - TIMER_GRAIN - self.clock.now()
        if early > 0:
            await self.clock.sleep(early)
        if removed or added:
            started = self.clock.now()
            await self.apply(removed, added)
            self._estimate.add(self.clock.now() - started)
        causes = {circuit: cause for circuit, (_, cause) in failing.items()} if self.keeps_failed else {}
        self._table.change(change.removed, added, causes)

    def _end(self, change: CrossbarChange, setting: asyncio.Task[None]) -> None:
        """Report the outcome of a change, and let the next one begin."""
        self._table.end()
        self._setting = None
        try:
            change.done(_outcome(setting))
        finally:
            self._changing.release()
            self.changed()

    def _check(self, circuits: Sequence[Circuit], removed: Sequence[Circuit]) -> None:
        self.faults.check_connect(circuits)
        self._table.check_change(removed, circuits)

    def _possible(self, circuits: Sequence[Circuit], removed: Sequence[Circuit]) -> tuple[Circuit, ...]:
        """Return the circuits before the first that cannot be set."""
        for count in range(len(circuits), 0, -1):
            try:
                self._check(circuits[:count], removed)
            except RefusalError:
                continue
            return tuple(circuits[:count])
        return ()

    def _with_dead_ports(self, reading: CircuitReading) -> CircuitReading:
        dead = self.faults.dead_ends(reading.circuit)
        if not dead or reading.state is not CircuitState.CONNECTED:
            return reading
        return replace(reading, state=CircuitState.FAILED, cause=has_failed(dead[0]))


def _outcome(setting: asyncio.Task[None]) -> RefusalError | None:
    error = asyncio.CancelledError() if setting.cancelled() else setting.exception()
    if error is None or isinstance(error, RefusalError):
        return error
    return RefusalError(SwitchRefusal.FAILED, f"the operation failed: {type(error).__name__}")
