"""NETCONF as a driver of optical switches: its keys in the configuration, and its sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator, Field

from optical_switch.drivers import Driver, DriverKeys, SwitchFiles, SwitchTarget, one_of
from optical_switch.netconf.netconf_session import NetconfSwitchSession
from optical_switch.netconf.polatis import MAX_PORT, PortNumbering
from optical_switch.ssh_settings import SshLoginSection, read_transport, require_ssh

if TYPE_CHECKING:
    from optical_switch.ssh import SshTransport

PROFILES = ("polatis",)


class NetconfKeys(DriverKeys):
    """The keys of an optical switch that speaks NETCONF."""

    attenuates: ClassVar[bool] = True

    ssh: SshLoginSection
    profile: Annotated[str, AfterValidator(one_of(PROFILES))] = "polatis"
    first_output: Annotated[int, Field(ge=2, le=MAX_PORT)] | None = None
    """Number of output 1 at the device. None: the one after the last input, as if the fabric used all inputs."""

    @property
    def summary(self) -> str:
        """Return the profile and the transport."""
        return f"{self.profile} by NETCONF over SSH"

    def faults(self, switch: str) -> Iterator[str]:
        """Yield one sentence for each fault."""
        yield from (f"the table ssh of {switch} {fault}" for fault in self.ssh.faults())


@dataclass(frozen=True, slots=True)
class NetconfAccess:
    """The access to a switch by NETCONF; all files have been read."""

    target: SwitchTarget
    transport: SshTransport
    numbering: PortNumbering

    @property
    def secrets(self) -> frozenset[str]:
        """The secrets, which must never be logged."""
        return self.transport.secrets

    def new_session(self) -> NetconfSwitchSession:
        """Return a session that is not open yet."""
        return NetconfSwitchSession(self.target, self.transport, self.numbering)


def _access(keys: NetconfKeys, target: SwitchTarget, files: SwitchFiles) -> NetconfAccess:
    require_ssh(target)
    from optical_switch.ssh import SshTransport

    transport = replace(
        read_transport(SshTransport, keys.ssh, target, files),
        subsystem="netconf",
        remedy="enable NETCONF on the switch, or correct the port in its address (usually 830)",
    )
    return NetconfAccess(target, transport, PortNumbering(keys.first_output or target.inputs + 1))


DRIVER = Driver("netconf", NetconfKeys, _access)
