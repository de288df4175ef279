"""The operator's log: an observer of the runtime that writes a line for each event beyond routine."""

from __future__ import annotations

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command, Publish, SetCircuits
from blast_controller.core.model.events import CircuitsObserved, DeviceConnected, Event, StepConfirmed, TableObserved
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.observer import Observer
from blast_controller.ops.activity import DriftWatch, LogLine, device_line, late_line, request_line, write_line


class ActivityLog(Observer):
    """An observer of the runtime."""

    def __init__(self) -> None:
        self._drift = DriftWatch()

    def on_event(self, event: Event, core: Core) -> None:
        """Log events of devices and foreign state on them."""
        # Most events are confirmations, which are routine.
        if isinstance(event, StepConfirmed):
            return
        write_line(device_line(event))
        write_line(self._drifted(event, core))

    def on_command(self, command: Command) -> None:
        """Log the events that clients receive: they are in force when they leave the core."""
        if isinstance(command, Publish):
            write_line(request_line(command.request, command.event))
        elif isinstance(command, SetCircuits):
            write_line(late_line(command))

    def _drifted(self, event: Event, core: Core) -> LogLine | None:
        match event:
            case TableObserved(datapath=datapath, foreign=foreign):
                return self._drift.rules(datapath, foreign)
            case CircuitsObserved(switch=switch):
                return self._occupied(switch, core)
            case DeviceConnected(device=str(switch)):
                return self._occupied(SwitchId(switch), core)
            case _:
                return None

    def _occupied(self, switch: SwitchId, core: Core) -> LogLine | None:
        return self._drift.occupied(switch, core.view.occupied.get(switch, {}))
