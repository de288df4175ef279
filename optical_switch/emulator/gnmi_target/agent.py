"""The agent of the switch, as SONiC's orchestration agent between the databases and the hardware.

One task reads CONFIG_DB after each change of it and has the hardware set the difference, one change after the other;
rows that change meanwhile are read afterwards. Another one writes STATE_DB whenever a reading of the hardware may have
changed. A circuit that the hardware refuses, or whose mirrors fail, is not tried again until its row is written again,
as by a client that deletes and sets it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import islice

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.crossbar import RefusalError, ends
from optical_switch.emulator.gnmi_target.assignment import Assignment, assign, changes
from optical_switch.emulator.gnmi_target.database import RowDatabase
from optical_switch.emulator.gnmi_target.ports import PortLayout, circuit_id
from optical_switch.emulator.gnmi_target.state_tables import differences, factory_rows, report_of, state_rows
from optical_switch.emulator.gnmi_target.tables import CONFIG_DB, Rows, tables_of
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.model import Circuit, Port

log = logging.getLogger(__name__)

FACTORY_BATCH = 1000
"""Rows of the factory's measurements in one transaction: Redis serves nothing else meanwhile."""


class SwitchAgent:
    """Drives the hardware as CONFIG_DB asks, and reports in STATE_DB.

    Parameters
    ----------
    hardware : OpticalHardware
        The hardware.
    layout : PortLayout
        Its ports.
    config : RowDatabase
        CONFIG_DB.
    state : RowDatabase
        STATE_DB.
    """

    def __init__(self, hardware: OpticalHardware, layout: PortLayout, config: RowDatabase, state: RowDatabase) -> None:
        self.is_ready = asyncio.Event()
        self._hardware = hardware
        self._layout = layout
        self._config = config
        self._state = state
        self._assignment = Assignment()
        self._refused: dict[Circuit, frozenset[Port]] = {}
        self._published: Rows = {}
        self._reading_changed = asyncio.Event()
        self._publishing = asyncio.Lock()

    async def run(self) -> None:
        """Start with an empty STATE_DB, as after a reboot, and work until this is cancelled."""
        self._hardware.listeners.append(self._reading_changed.set)
        try:
            await self._state.clear()
            rows = factory_rows(self._layout)
            while batch := list(islice(rows, FACTORY_BATCH)):
                await self._state.write(batch)
            await self._publish()
            self.is_ready.set()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow_config())
                tasks.create_task(self._follow_hardware())
        finally:
            self._hardware.listeners.remove(self._reading_changed.set)

    # ------------------------------------------------------------------------------------------------ CONFIG_DB

    async def _follow_config(self) -> None:
        async with self._config.watch() as watch:
            while True:
                while await self._carry_out(await self._config.read(tables_of(CONFIG_DB))):
                    pass
                touched = {row.key[0] for row in await watch.changed()}
                self._refused = {c: ports for c, ports in self._refused.items() if circuit_id(c) not in touched}

    async def _carry_out(self, rows: Rows) -> bool:
        """Make one change of the hardware if one is due; return true if there may be another one."""
        hardware = self._hardware
        present = set(hardware.crossbar.circuits)
        self._assignment = assign(rows, self._layout, present | self._refused.keys())
        self._refused = {c: ports for c, ports in self._refused.items() if c in self._assignment.circuits}
        removed, added = changes(self._assignment, present, self._refused)
        self._reading_changed.set()
        if not removed and not added:
            return False
        try:
            await (await hardware.plan_and_set(lambda: self._plan(removed, added)))
        except RefusalError as refusal:
            self._note_refused(added, refusal.ports)
            return bool(added)
        except Exception:
            # Whatever fails at the light paths, the switch keeps running, and its state shows the failure.
            log.exception("the emulated switch could not change its light paths")
            self._note_refused(added, frozenset())
            return bool(added)
        return True

    def _plan(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> CrossbarChange:
        return self._hardware.connecting(added, removed) if added else self._hardware.disconnecting(removed)

    def _note_refused(self, circuits: Sequence[Circuit], ports: frozenset[Port]) -> None:
        """Note the circuits at the blamed ports, or all if none is blamed; the others are tried again without them."""
        present = self._hardware.crossbar.circuits
        missing = {c: ports.intersection(ends(c)) for c in circuits if c not in present}
        self._refused |= {c: blamed for c, blamed in missing.items() if blamed} or missing
        self._reading_changed.set()

    # ------------------------------------------------------------------------------------------------- STATE_DB

    async def _follow_hardware(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._reading_changed.wait()
                await self._publish()
                if self._hardware.faults.late_list:
                    tasks.create_task(self._publish_late(self._hardware.faults.late_list))

    async def _publish_late(self, seconds: float) -> None:
        """Publish once more when the list of the hardware, which lags behind, has the change."""
        await self._hardware.clock.sleep(seconds)
        await self._publish()

    async def _publish(self) -> None:
        # One after the other: two writes on two connections could arrive in the wrong order.
        async with self._publishing:
            self._reading_changed.clear()
            report = report_of(self._hardware, self._refused)
            rows = state_rows(self._layout, self._assignment, report)
            await self._state.write(differences(self._published, rows))
            self._published = rows
