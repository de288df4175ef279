"""Emulated optical switches with the access of their drivers, all with the same handles, for tests of every driver."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
import pytest

from optical_switch.drivers import SwitchAccess, SwitchTarget
from optical_switch.emulator.faults import Faults
from optical_switch.emulator.gnmi_target.target import serve_sonic_ocs
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.emulator.netconf_server.server import serve_netconf
from optical_switch.emulator.netconf_server.settings import NetconfSwitchSettings, UserAccount
from optical_switch.model import Circuit
from optical_switch.netconf.driver import NetconfAccess
from optical_switch.netconf.polatis import PortNumbering
from optical_switch.sonic_ocs.access import GnmiAccess, RedisAccess
from optical_switch.ssh import SshTransport, host_keys
from tl1_driver.dialects import DIALECTS
from tl1_driver.driver import Tl1Access
from tl1_driver.emulator.agent import EmulatedSwitch

PORTS = 8
CONNECT_SECONDS = 0.002
"""Seconds in which the mirrors of a test settle."""

USER, PASSWORD = "blast", "not secret"


@dataclass
class LitPaths:
    """The light paths that are set, as the switch itself sets them."""

    lit: set[Circuit] = field(default_factory=set)
    changes: int = 0

    async def apply(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        assert set(removed) <= self.lit, "only circuits that are set can be removed"
        self.lit = self.lit - set(removed) | set(added)
        self.changes += 1


@dataclass
class SwitchBed:
    """An emulated switch of 8 x 8 and the access of its driver."""

    access: SwitchAccess
    hardware: OpticalHardware
    paths: LitPaths
    cut: Callable[[], None]
    reboot: Callable[[], Awaitable[None]]
    another_writer: Callable[[Circuit], Awaitable[None]]
    flush: Callable[[], Awaitable[None]] | None = None
    """Empties the database of the switch, if it has one."""

    @property
    def faults(self) -> Faults:
        return self.hardware.faults


MakeBed = Callable[[Path, float], contextlib.AbstractAsyncContextManager[SwitchBed]]
"""Runs a switch, given a folder of its own and the driver's seconds for each answer."""


def tl1(dialect: str) -> MakeBed:
    """Return a bed of a TL1 dialect."""

    @contextlib.asynccontextmanager
    async def serve(folder: Path, timeout: float) -> AsyncIterator[SwitchBed]:
        paths = LitPaths()
        # With a login, because a switch without one refuses a session only by closing the connection.
        switch = EmulatedSwitch(
            PORTS,
            PORTS,
            apply=paths.apply,
            dialect=dialect,
            connect_seconds=CONNECT_SECONDS,
            user=USER,
            password=PASSWORD,
        )
        sock = socket.create_server(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        server = await switch.serve(sock)
        target = SwitchTarget("ocs1", "127.0.0.1", port, PORTS, PORTS, timeout)
        access = Tl1Access(target, DIALECTS[dialect], USER, PASSWORD)
        try:
            yield SwitchBed(access, switch.hardware, paths, switch.cut, switch.reboot, switch.connect_by_hand)
        finally:
            switch.cut()
            server.close()
            await server.wait_closed()

    return serve


def sonic_ocs(access: str, *, mixed_schema: bool = False) -> MakeBed:
    """Return a bed of SONiC OCS by gNMI or Redis; skips where Redis is not installed."""

    @contextlib.asynccontextmanager
    async def serve(folder: Path, timeout: float) -> AsyncIterator[SwitchBed]:
        if shutil.which("redis-server") is None:
            pytest.skip("redis-server is not installed: apt-get install redis-server")
        paths = LitPaths()
        async with serve_sonic_ocs(
            folder, PORTS, PORTS, apply=paths.apply, connect_seconds=CONNECT_SECONDS, mixed_schema=mixed_schema
        ) as switch:
            port = int(switch.address.rpartition(":")[2])
            target = SwitchTarget("ocs1", "127.0.0.1", port, PORTS, PORTS, timeout)
            own = GnmiAccess(target) if access == "gnmi" else RedisAccess(target, socket=switch.redis_socket)
            yield SwitchBed(
                own,
                switch.hardware,
                paths,
                switch.cut,
                switch.reboot,
                switch.another_writer,
                switch.flush_database,
            )

    return serve


@contextlib.asynccontextmanager
async def netconf(folder: Path, timeout: float) -> AsyncIterator[SwitchBed]:
    """Run a switch with NETCONF."""
    paths = LitPaths()
    key = asyncssh.generate_private_key("ssh-ed25519")
    settings = NetconfSwitchSettings(
        {USER: UserAccount(public_key=key.export_public_key().decode())}, connect_seconds=CONNECT_SECONDS
    )
    async with serve_netconf(PORTS, PORTS, apply=paths.apply, settings=settings) as switch:
        target = SwitchTarget("ocs1", *switch.address, PORTS, PORTS, timeout)
        transport = SshTransport(USER, host_keys(switch.host_key), key=key, subsystem="netconf")
        access = NetconfAccess(target, transport, PortNumbering(PORTS + 1))
        yield SwitchBed(access, switch.hardware, paths, switch.cut, switch.reboot, switch.another_writer)


BEDS: dict[str, MakeBed] = {
    **{f"tl1 {dialect}": tl1(dialect) for dialect in ("glimmerglass", "calient", "polatis")},
    "sonic-ocs gnmi": sonic_ocs("gnmi"),
    "sonic-ocs gnmi with mixed schema": sonic_ocs("gnmi", mixed_schema=True),
    "sonic-ocs redis": sonic_ocs("redis"),
    "netconf": netconf,
}
"""Every driver with its emulator."""
