"""TL1 as a driver of optical switches: its keys in the configuration, and its sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from blast_base.settings import File
from optical_switch.drivers import Driver, DriverKeys, SwitchFiles, SwitchTarget, one_of
from optical_switch.errors import InvalidDriverSettingError
from optical_switch.model import Circuit, CircuitReading, CircuitState, LossReading, PortDescription, PowerReading
from optical_switch.session import BatchResult, Capabilities, LightCheckTime, Notice
from optical_switch.ssh_settings import SshLoginSection, Text, read_transport, require_ssh
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS, configured
from tl1_driver.dialects.base import Dialect
from tl1_driver.protocol.errors import CommandDeniedError
from tl1_driver.protocol.messages import Autonomous
from tl1_driver.transport import Tcp, Tl1Transport

if TYPE_CHECKING:
    from tl1_driver.protocol.circuits import ListedCircuit

MAX_ALARMS = 2048
"""Taken from one message: more than one for each port of the largest switches."""


class SshSection(SshLoginSection):
    """User, host authentication and TL1 channel of an SSH connection to a switch."""

    subsystem: Text | None = None
    command: Text | None = None
    terminal: bool = False

    def faults(self) -> Iterator[str]:
        """Yield faults beyond single values: each the end of a sentence about this table."""
        yield from super().faults()
        if self.subsystem is not None and self.command is not None:
            yield "has both subsystem and command: keep only one, or neither if the user's shell speaks TL1."


class Tl1Keys(DriverKeys):
    """The keys of an optical switch that speaks TL1."""

    dialect: Annotated[str, AfterValidator(one_of(DIALECTS))] = "glimmerglass"
    dialect_settings: Annotated[dict[str, str | bool | int | float | list[str]], Field(default_factory=dict)]
    user: str = ""
    password_file: File | None = None
    ssh: SshSection | None = None

    @property
    def default_light_check(self) -> LightCheckTime:
        """Return the dialect's default."""
        return DIALECTS[self.dialect].light_check

    @property
    def summary(self) -> str:
        """Return the dialect and the transport."""
        return f"{self.dialect} by {'plain TCP' if self.ssh is None else 'SSH'}"

    def faults(self, switch: str) -> Iterator[str]:
        """Yield one sentence for each fault."""
        try:
            configured(self.dialect, self.dialect_settings)
        except InvalidDriverSettingError as error:
            yield f"{switch}: {error}."
        if self.user and self.password_file is None:
            yield f"{switch} has user but no password_file: set password_file."
        if self.ssh is not None:
            yield from (f"the table ssh of {switch} {fault}" for fault in self.ssh.faults())


@dataclass(frozen=True, slots=True)
class Tl1Access:
    """Access to a switch by TL1."""

    target: SwitchTarget
    dialect: Dialect
    user: str = ""
    password: str = ""
    way: Tl1Transport = Tcp()  # noqa: RUF009 - it cannot be changed

    @property
    def secrets(self) -> frozenset[str]:
        """The secrets, which must never be logged."""
        return self.way.secrets | frozenset(filter(None, [self.password]))

    def new_session(self) -> Tl1SwitchSession:
        """Return a session that is not open yet."""
        return Tl1SwitchSession(self)


def _access(keys: Tl1Keys, target: SwitchTarget, files: SwitchFiles) -> Tl1Access:
    password = "" if keys.password_file is None else files.read_secret(keys.password_file).strip()
    dialect = configured(keys.dialect, keys.dialect_settings)
    way = Tcp() if keys.ssh is None else _ssh(keys.ssh, target, files)
    return Tl1Access(target, dialect, keys.user, password, way)


def _ssh(section: SshSection, target: SwitchTarget, files: SwitchFiles) -> Tl1Transport:
    require_ssh(target)
    from tl1_driver.ssh import Ssh

    return replace(
        read_transport(Ssh, section, target, files),
        subsystem=section.subsystem or "",
        command=section.command or "",
        terminal=section.terminal,
    )


class Tl1SwitchSession:
    """A session by TL1, as `optical_switch.session.SwitchSession` describes it."""

    def __init__(self, access: Tl1Access) -> None:
        # TL1 takes deletes and adds apart, and may do a part of a refused bulk.
        self._capabilities = Capabilities(
            one_transaction=False, atomic=False, confirms=access.dialect.confirms, light="powers"
        )
        self._listener: Callable[[Notice], None] | None = None
        self._client = SwitchClient(
            access.target.host,
            access.target.port,
            access.dialect,
            user=access.user,
            password=access.password,
            timeout=access.target.timeout,
            on_autonomous=self._report,
            way=access.way,
        )

    @property
    def capabilities(self) -> Capabilities:
        """Properties of the switch, which its dialect determines."""
        return self._capabilities

    def subscribe(self, listener: Callable[[Notice], None]) -> None:
        """Have `listener` called with every alarm of the switch."""
        self._listener = listener

    async def open(self) -> None:
        """Connect and log in."""
        await self._client.open()

    async def close(self) -> None:
        """Log out and disconnect."""
        await self._client.close()

    async def wait_closed(self) -> str:
        """Wait until the session has ended, and return the reason."""
        return await self._client.wait_closed()

    async def apply(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        """Remove circuits, then set others; a refusal ends the batch."""
        try:
            await self._client.disconnect(deletes)
            await self._client.connect(adds)
        except CommandDeniedError as error:
            return BatchResult(error=error)
        return BatchResult()

    async def read_circuits(self) -> Sequence[CircuitReading]:
        """Return the switch's list of circuits."""
        return [_reading(listed) for listed in await self._client.circuits()]

    async def read_ports(self) -> Sequence[PortDescription]:
        """Return nothing: no dialect has a command for the names that is known to work on all models."""
        return []

    async def read_powers(self) -> Sequence[PowerReading]:
        """Return the power at every port with a monitor."""
        return [PowerReading(port, dbm) for port, dbm in (await self._client.powers()).items()]

    async def read_losses(self) -> Sequence[LossReading]:
        """Return nothing: no dialect reports losses."""
        return []

    def _report(self, message: Autonomous) -> None:
        if self._listener is not None:
            for alarm in self._client.alarms(message)[:MAX_ALARMS]:
                self._listener(alarm)


def _reading(listed: ListedCircuit) -> CircuitReading:
    if not listed.made:
        state = CircuitState.ABSENT
    elif listed.state == "fault" and not listed.waits_for_light:
        state = CircuitState.FAILED
    else:
        state = CircuitState.CONNECTED
    return CircuitReading(listed.circuit, state, listed.cause, listed.locked, listed.owner)


DRIVER = Driver("tl1", Tl1Keys, _access)
