"""The emulated optical switches of the benchmarks: how the driver of each one and the controller reach it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optical_switch.drivers import SwitchTarget
from tl1_driver.dialects import DIALECTS
from tl1_driver.driver import Tl1Access

if TYPE_CHECKING:
    from optical_switch.drivers import SwitchAccess

DRIVERS = ("tl1", "sonic-ocs-gnmi", "sonic-ocs-redis", "netconf")
"""Drivers, each with its protocol if it has several."""
USER = PASSWORD = "admin"
TIMEOUT = 10.0
"""Seconds for each answer: emulator and driver share a machine, and a late answer must not end a measurement."""


@dataclass(frozen=True)
class SwitchEndpoint:
    """A running emulated switch with as many inputs as outputs.

    Parameters
    ----------
    driver : str
        Its driver, one of `DRIVERS`.
    ports : int
        Number of inputs.
    address : str
        HOST:PORT of its agent.
    redis_socket : str
        Unix socket of its databases. Empty: it has none.
    host_key : str
        Public SSH host key. Empty: it has none.
    dialect : str
        Dialect of TL1.
    """

    driver: str
    ports: int
    address: str
    redis_socket: str = ""
    host_key: str = ""
    dialect: str = "glimmerglass"

    @classmethod
    def of(cls, driver: str, ports: int, ready: dict[str, Any], dialect: str = "glimmerglass") -> SwitchEndpoint:
        """Return the endpoint that the first line of `emulated_switch.py` describes."""
        return cls(driver, ports, ready["address"], ready.get("redis_socket", ""), ready.get("host_key", ""), dialect)

    @property
    def host_and_port(self) -> tuple[str, int]:
        """The address in two parts."""
        host, _, port = self.address.rpartition(":")
        return host, int(port)

    def access(self) -> SwitchAccess:
        """Return the access of the driver."""
        target = SwitchTarget("ocs", *self.host_and_port, self.ports, self.ports, TIMEOUT)
        if self.driver == "tl1":
            return Tl1Access(target, DIALECTS[self.dialect])
        if self.driver == "netconf":
            return _netconf_access(target, self.host_key)
        from optical_switch.sonic_ocs.access import GnmiAccess, RedisAccess

        if self.driver == "sonic-ocs-redis":
            return RedisAccess(target, socket=Path(self.redis_socket))
        return GnmiAccess(target)

    def keys(self, folder: Path) -> list[str]:
        """Return lines of the table `[[optical_switch]]`: address and driver; files that they name are in `folder`."""
        if self.driver == "sonic-ocs-redis":
            return ['driver = "sonic-ocs"', 'access = "redis"', f"socket = {json.dumps(self.redis_socket)}"]
        address = f'address = "{self.address}"'
        if self.driver == "tl1":
            return [address, f'dialect = "{self.dialect}"']
        if self.driver == "netconf":
            return [address, 'driver = "netconf"', f"ssh = {_login(folder, self.host_key)}"]
        return [address, 'driver = "sonic-ocs"', 'access = "gnmi"']


def _netconf_access(target: SwitchTarget, host_key: str) -> SwitchAccess:
    from optical_switch.netconf.driver import NetconfAccess
    from optical_switch.netconf.polatis import PortNumbering
    from optical_switch.ssh import SshTransport, host_keys

    transport = SshTransport(USER, host_keys(host_key), password=PASSWORD, subsystem="netconf")
    return NetconfAccess(target, transport, PortNumbering(target.inputs + 1))


def _login(folder: Path, host_key: str) -> str:
    """Return the table `ssh` as TOML."""
    password, key = folder / "ocs-password", folder / "ocs-host-key.pub"
    # The controller refuses a password that others can read.
    password.touch(0o600)
    password.write_text(f"{PASSWORD}\n")
    key.write_text(f"{host_key}\n")
    files = f"password_file = {json.dumps(str(password))}, host_key = {json.dumps(str(key))}"
    return f'{{ user = "{USER}", {files} }}'
