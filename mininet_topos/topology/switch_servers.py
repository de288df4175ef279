"""The servers of the lab's optical switch: one for each protocol, all with the same emulated hardware.

Each imports its libraries when it starts: those of one protocol are not needed for another one, nor by `mn --custom`,
which runs the system's Python.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blast_base.endpoint import Endpoint, listen_on
from mininet_topos.kernel.errors import HostError, PlanError
from optical_switch.emulator.hardware import Apply, OpticalHardware
from optical_switch.emulator.light import PowerModel

if TYPE_CHECKING:
    import asyncssh

BACKLOG = 100
"""Connections that wait to be accepted: the usual value of asyncio."""
NETCONF_USER = "blast"
USER_KEY, HOST_KEY = "user_key", "host_key"
"""Files of the keys of the SSH user and of the switch; with `.pub` the public keys."""


@dataclass(frozen=True)
class LabSwitchSettings:
    """Settings of a switch for the server of any protocol.

    Parameters
    ----------
    listen : Endpoint
        Address at which to serve; port 0 for any free one.
    ports : int
        Number of duplex ports.
    apply : Apply
        Function that sets the light paths.
    connect_seconds : float
        Time of a change that sets circuits.
    power : PowerModel
        Model of the power at the ports.
    receivers : Sequence[int]
        Outputs with a receiver.
    sensitivity_dbm : float
        Power in dBm below which a receiver receives nothing.
    folder : Path
        Folder for the files of the switch, which outlive a power cycle.
    """

    listen: Endpoint
    ports: int
    apply: Apply
    connect_seconds: float
    power: PowerModel
    receivers: Sequence[int]
    sensitivity_dbm: float
    folder: Path


def report_nothing(_output: int, _lit: bool) -> None:
    """Report no alarm: the protocol has its own, which follow from readings."""


@dataclass(frozen=True)
class ServedSwitch:
    """A switch that is served.

    Parameters
    ----------
    address : Endpoint
        Where it is served.
    hardware : OpticalHardware
        Its hardware, with the injected faults.
    cut : Callable[[], None]
        Function that cuts all sessions; circuits stay.
    report_output : Callable[[int, bool], None]
        Function that reports loss of signal at an output (False), or its end (True).
    """

    address: Endpoint
    hardware: OpticalHardware
    cut: Callable[[], None]
    report_output: Callable[[int, bool], None] = report_nothing


ServeSwitch = Callable[[LabSwitchSettings], AbstractAsyncContextManager[ServedSwitch]]
"""Serves a switch until the context ends. Raises `PlanError` or `HostError`."""


@asynccontextmanager
async def serve_tl1(settings: LabSwitchSettings) -> AsyncIterator[ServedSwitch]:
    """Serve the dialect of Glimmerglass switches by TL1."""
    from tl1_driver.dialects import DIALECTS
    from tl1_driver.emulator.agent import EmulatedSwitch
    from tl1_driver.protocol.messages import Severity

    listener = _listen(settings.listen)
    switch = EmulatedSwitch(
        settings.ports,
        settings.ports,
        apply=settings.apply,
        connect_seconds=settings.connect_seconds,
        power=settings.power,
    )

    def report_output(output: int, lit: bool) -> None:
        severity, code = (Severity.EVENT, "CL") if lit else (Severity.CRITICAL, "CR")
        name = DIALECTS["glimmerglass"].output_name(output)
        switch.report(severity, "REPT ALM EQPT", f"{name}:{code},LOS,SA,,,,TRMT")

    server = await switch.serve(listener)
    try:
        yield ServedSwitch(_address_of(listener), switch.hardware, switch.cut, report_output)
    finally:
        switch.cut()
        server.close()


@asynccontextmanager
async def serve_sonic(settings: LabSwitchSettings) -> AsyncIterator[ServedSwitch]:
    """Serve SONiC's model of an OCS by gNMI; the model has no power meters, so readings need no power model."""
    from optical_switch.emulator.gnmi_target.redis_server import RedisStartError
    from optical_switch.emulator.gnmi_target.target import serve_sonic_ocs

    listener = _listen(settings.listen)
    serving = serve_sonic_ocs(
        settings.folder,
        settings.ports,
        settings.ports,
        apply=settings.apply,
        connect_seconds=settings.connect_seconds,
        listener=listener,
    )
    async with AsyncExitStack() as stack:
        try:
            target = await stack.enter_async_context(serving)
        except RedisStartError as error:
            raise HostError(str(error)) from error
        except ValueError as error:
            raise PlanError(f"cannot listen on {settings.listen}: {error}") from error
        host, _, port = target.address.rpartition(":")
        yield ServedSwitch(Endpoint(host, int(port)), target.hardware, target.cut)


@asynccontextmanager
async def serve_polatis(settings: LabSwitchSettings) -> AsyncIterator[ServedSwitch]:
    """Serve the model of Polatis switches by NETCONF; the user and the switch have keys in the folder."""
    from mininet_topos.topology.power_alarms import enable_power_alarms
    from optical_switch.emulator.netconf_server.server import serve_netconf
    from optical_switch.emulator.netconf_server.settings import NetconfSwitchSettings, UserAccount
    from optical_switch.ssh import SshTransport, host_keys

    user, host = (_key(settings.folder / name) for name in (USER_KEY, HOST_KEY))
    listener = _listen(settings.listen)
    served = serve_netconf(
        settings.ports,
        settings.ports,
        apply=settings.apply,
        settings=NetconfSwitchSettings(
            {NETCONF_USER: UserAccount(public_key=user.export_public_key().decode())},
            connect_seconds=settings.connect_seconds,
            host_key=host.export_private_key().decode(),
        ),
        listener=listener,
        power=settings.power,
    )
    async with served as switch:
        address = Endpoint(*switch.address)
        transport = SshTransport(NETCONF_USER, host_keys(switch.host_key), key=user, subsystem="netconf")
        # Outputs have the numbers after those of the inputs.
        watched = [settings.ports + output for output in settings.receivers]
        await enable_power_alarms(address, transport, watched, settings.sensitivity_dbm)
        yield ServedSwitch(address, switch.hardware, switch.cut)


def _key(path: Path) -> asyncssh.SSHKey:
    """Return the private key in a file; a new one if there is none, with its public key beside it."""
    import asyncssh

    if path.exists():
        return asyncssh.read_private_key(path)
    key = asyncssh.generate_private_key("ssh-ed25519")
    path.touch(mode=0o600)
    key.write_private_key(path)
    key.write_public_key(f"{path}.pub")
    return key


def _listen(address: Endpoint) -> socket.socket:
    try:
        listener = listen_on(address.host, address.port, BACKLOG)
    except OSError as refusal:
        raise PlanError(f"cannot listen on {address}: {refusal}") from refusal
    listener.setblocking(False)
    return listener


def _address_of(listener: socket.socket) -> Endpoint:
    host, port = listener.getsockname()[:2]
    return Endpoint(host, port)
