"""Errors of an optical switch and its drivers, by responsible party.

OpticalSwitchError
├── SwitchUsageError      the caller used the driver wrongly: nothing was sent
├── RefusedError          the device refused a change or a reading
├── DeviceBusyError       the device could not do it now, such as for another writer; nothing was done
│   └── SessionLimitError the device has as many sessions as it takes
├── UnreachableError      no session, a session that ended, or no answer in time: pending changes are unknown
└── ProtocolError         the device's text violates its protocol or model
"""

from __future__ import annotations

from collections.abc import Iterable

from optical_switch.model import Port


class OpticalSwitchError(Exception):
    """Base of all errors of optical switches."""


class SwitchUsageError(OpticalSwitchError):
    """The caller used the driver wrongly; nothing was sent."""


class InvalidDriverSettingError(SwitchUsageError):
    """A driver has no such setting, or not with that value."""


class RefusedError(OpticalSwitchError):
    """The device refused.

    Parameters
    ----------
    code : str
        Error code of the device, for counting.
    text : str
        Explanation of the device.
    ports : Iterable[Port]
        Ports that the device blames. Empty: it names none.
    """

    def __init__(self, code: str, text: str = "", ports: Iterable[Port] = ()) -> None:
        self.code = code
        self.text = text
        self.ports = frozenset(ports)
        super().__init__(f"{code}: {text}" if text else code)


class DeviceBusyError(OpticalSwitchError):
    """The device could not take the change or the session now; nothing was done."""


class SessionLimitError(DeviceBusyError):
    """The device has as many sessions as it takes.

    Parameters
    ----------
    text : str
        Explanation of the device.
    """

    def __init__(self, text: str) -> None:
        super().__init__(
            f"the switch takes no further session ({text}): end a session of another client, such as another "
            "controller, or raise the limit of the switch"
        )


class UnreachableError(OpticalSwitchError):
    """No session, a session that ended, or no answer in time; the outcome of pending changes is unknown."""


class ProtocolError(OpticalSwitchError):
    """Data of the device violate its protocol or its model."""
