"""Drivers of optical switches: the parts of a driver, and a search for the installed ones.

A driver is one line in the entry points of a distribution, in the group `blast.optical_switches`: its name, and where
its `Driver` is defined. Those of Blast are in `pyproject.toml`; any other distribution may add its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

from blast_base.settings import Section
from optical_switch.session import LightCheckTime, SwitchSession

GROUP = "blast.optical_switches"
DEFAULT = "tl1"


class DriverKeys(Section):
    """The keys that a driver adds to the table of an optical switch.

    `measures_power`: its devices may have power meters, so that `light_check` has a meaning. `attenuates`: its devices
    may have variable attenuators, and its sessions are `AttenuatingSession`s.
    """

    measures_power: ClassVar[bool] = True
    attenuates: ClassVar[bool] = False

    @property
    def default_light_check(self) -> LightCheckTime:
        """The time of the power check, unless the table has one."""
        return "off"

    @property
    def local_socket(self) -> Path | None:
        """The Unix socket of the switch in place of `address`, for a driver with the key `socket`."""
        return None

    @property
    def summary(self) -> str:
        """Return in a few words how the switch is reached."""
        return "no settings"

    def faults(self, switch: str) -> Iterator[str]:
        """Yield the faults beyond single values.

        Parameters
        ----------
        switch : str
            The switch in a sentence, such as "the optical switch ocs1".

        Yields
        ------
        str
            One sentence for each fault.
        """
        yield from ()


Keys = TypeVar("Keys", bound=DriverKeys)


@dataclass(frozen=True, slots=True)
class SwitchTarget:
    """The common keys of a table of any driver.

    Parameters
    ----------
    name : str
        Name of the switch in the configuration.
    host : str
        Host name or address. Empty: the switch is reached at a Unix socket.
    port : int
        TCP port; 0 without a host.
    inputs : int
        Number of inputs that the fabric may use.
    outputs : int
        Number of outputs that the fabric may use.
    timeout : float
        Seconds for each answer of the device.
    """

    name: str
    host: str
    port: int
    inputs: int
    outputs: int
    timeout: float = 2.0

    @property
    def phrase(self) -> str:
        """The switch in a sentence."""
        return f"the optical switch {self.name}"


class SwitchFiles(Protocol):
    """The files that a table names. Both methods raise an error with the path if a file cannot be used."""

    def read(self, path: Path) -> str:
        """Return the text of a file.

        Parameters
        ----------
        path : Path
            The file.

        Returns
        -------
        str
            The text.
        """

    def read_secret(self, path: Path) -> str:
        """Return the text of a file that only its owner may read.

        Parameters
        ----------
        path : Path
            The file.

        Returns
        -------
        str
            The text.
        """


class SwitchAccess(Protocol):
    """Access to one switch; all files have been read."""

    @property
    def secrets(self) -> frozenset[str]:
        """Texts that must not appear in logs."""

    def new_session(self) -> SwitchSession:
        """Return a session that is not open yet."""


@dataclass(frozen=True, slots=True)
class Driver(Generic[Keys]):
    """A protocol of optical switches.

    Parameters
    ----------
    name : str
        Name in configurations and metrics.
    keys : type[Keys]
        Model of its keys.
    access : Callable[[Keys, SwitchTarget, SwitchFiles], SwitchAccess]
        Function that returns the access to a switch, given an instance of `keys`. Raises `InvalidDriverSettingError`,
        with a sentence that names the switch (`SwitchTarget.phrase`).
    """

    name: str
    keys: type[Keys]
    access: Callable[[Keys, SwitchTarget, SwitchFiles], SwitchAccess]


@cache
def drivers() -> dict[str, Driver[DriverKeys]]:
    """Return all installed drivers by name.

    Returns
    -------
    dict[str, Driver[DriverKeys]]
        The drivers; the first distribution that has a name wins.
    """
    found: dict[str, Driver[DriverKeys]] = {}
    for point in sorted(entry_points(group=GROUP)):
        driver = point.load()
        found.setdefault(driver.name, driver)
    return found


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return a check of a key's value.

    Parameters
    ----------
    names : Iterable[str]
        Allowed values.

    Returns
    -------
    Callable[[str], str]
        Function that returns its argument.

    Raises
    ------
    ValueError
        By the returned function, if its argument is not allowed.
    """
    allowed = sorted(names)

    def check(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return value

    return check
