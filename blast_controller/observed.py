"""The runtime's doors with a log behind them: who waits is told, devices report, and the operator can read it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

from blast_controller.core.events import CircuitsObserved, DeviceEvent, DeviceUp, TableObserved
from blast_controller.core.identifiers import SwitchId
from blast_controller.core.requests import RequestEvent
from blast_controller.ops.activity import DriftWatch, Line, device_line, request_line, tell
from blast_controller.runtime import Runtime, Turn
from blast_controller.waiting import WaitingRoom


class ToldWaitingRoom(WaitingRoom):
    """Tells the log whatever it tells those who wait: what has left the core and is in force."""

    def notify(self, topic: Hashable, event: Any, number: float = math.inf) -> None:
        """Call everyone who wants this event."""
        super().notify(topic, event, number)
        match topic, event:
            case (str(tenant), str(key)), RequestEvent():
                tell(request_line((tenant, key), event))


class DeviceReports:
    """Takes the devices' events, from any thread, to the runtime and to the log."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._drift = DriftWatch()

    def post(self, event: DeviceEvent) -> None:
        """Take an event."""
        self._runtime.post(event)
        tell(device_line(event))
        look = self._drift_look(event)
        if look is not None:
            # On the runtime's thread, where the event has been handled by then.
            self._runtime.call(look)

    def _drift_look(self, event: DeviceEvent) -> Callable[[Turn], None] | None:
        match event:
            case TableObserved(datapath=datapath, foreign=foreign):
                return lambda turn: tell(self._drift.rules(datapath, foreign))
            case CircuitsObserved(switch=switch):
                return lambda turn: tell(self._occupied(switch, turn))
            case DeviceUp(device=str(switch)):
                return lambda turn: tell(self._occupied(SwitchId(switch), turn))
            case _:
                return None

    def _occupied(self, switch: SwitchId, turn: Turn) -> Line | None:
        return self._drift.occupied(switch, turn.core.ledger.occupied.get(switch, {}))
