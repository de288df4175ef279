"""Live reservations by device and by request: an event of a device does not look at those of all others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.requests import RequestKey


class ReservationIndex:
    """The numbers of live reservations; a device counts from the first command to it, until the reservation is gone."""

    def __init__(self) -> None:
        self._on: defaultdict[Device, set[int]] = defaultdict(set)
        self._devices: defaultdict[int, set[Device]] = defaultdict(set)
        self._of_request = Counter[RequestKey]()

    def on(self, device: Device) -> list[int]:
        """Return the reservations that a device may hold something of, in order."""
        return sorted(self._on.get(device, ()))

    def has_hardware(self, request: RequestKey) -> bool:
        """Return true if a reservation serves a request, or still leaves it."""
        return request in self._of_request

    def note_devices(self, number: int, devices: Iterable[Device]) -> None:
        """Note devices that get commands for a reservation, or hold something of it."""
        known = self._devices[number]
        for device in devices:
            if device not in known:
                known.add(device)
                self._on[device].add(number)

    def note_request(self, request: RequestKey) -> None:
        """Note that one more reservation serves a request."""
        self._of_request[request] += 1

    def forget_request(self, request: RequestKey) -> None:
        """Note that a reservation no longer serves a request."""
        self._of_request[request] -= 1
        if not self._of_request[request]:
            del self._of_request[request]

    def forget_devices(self, number: int) -> None:
        """Forget a reservation that is gone."""
        for device in self._devices.pop(number, ()):
            self._on[device].discard(number)
