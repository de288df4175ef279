"""A session over SSH to a scripted device: login, host keys, the subsystem, and sessions that end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from optical_switch.drivers import SwitchTarget
from optical_switch.errors import UnreachableError
from optical_switch.model import Alarm, Circuit, Port
from optical_switch.netconf.driver import DRIVER, NetconfKeys
from optical_switch.netconf.netconf_session import NetconfSwitchSession
from optical_switch.netconf.polatis import POLATIS_SWITCH
from optical_switch.session import BatchResult, Notice
from optical_switch.ssh import SshLoginRefusedError, UntrustedHostKeyError
from optical_switch.unsolicited import FLOOD
from tests.optical_switch.netconf.scripted_device import ScriptedDevice, ScriptedServer, TextFiles
from tests.support.waiting import eventually_async

HANGING = 30.0
USER, PASSWORD = "blast", "open sesame"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("netconf")
    for name in ("host", "other"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(folder / name)
        key.write_public_key(folder / f"{name}.pub")
    (folder / "password").write_text(f"{PASSWORD}\n")
    (folder / "wrong").write_text("guess\n")
    return folder


class Login(asyncssh.SSHServer):
    """An SSH server that lets one user in and starts one device."""

    connections = 0

    def __init__(self, device: ScriptedDevice) -> None:
        self._device = device

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        Login.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        Login.connections -= 1

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == (USER, PASSWORD)

    def session_requested(self) -> ScriptedServer:
        return ScriptedServer(self._device)


@asynccontextmanager
async def serving(folder: Path, device: ScriptedDevice) -> AsyncIterator[int]:
    """Serve the device on a port; check that no connection is left."""
    server = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=lambda: Login(device), server_host_keys=[str(folder / "host")], encoding=None
    )
    try:
        yield server.get_port()
        await eventually_async(lambda: Login.connections == 0, "all connections to end")
    finally:
        server.close()
        await server.wait_closed()


def session_to(port: int, folder: Path, **files: str) -> NetconfSwitchSession:
    """Return a session as the configuration describes it."""
    table = {"password_file": "password", "host_key": "host.pub"} | files
    ssh = {"user": USER, "open_timeout_ms": 1000 * HANGING} | {key: folder / name for key, name in table.items()}
    keys = NetconfKeys.model_validate({"ssh": ssh})
    assert list(keys.faults("the optical switch ocs1")) == []
    access = DRIVER.access(keys, SwitchTarget("ocs1", "127.0.0.1", port, 16, 16, HANGING), TextFiles())
    assert access.secrets == {(folder / files.get("password_file", "password")).read_text().strip()}
    session = access.new_session()
    assert isinstance(session, NetconfSwitchSession)
    return session


@pytest.mark.parametrize("chunks", [True, False])
async def test_circuits_are_set_and_alarms_received_over_ssh(folder: Path, chunks: bool) -> None:
    device = ScriptedDevice(chunks=chunks)
    notices: list[Notice] = []
    async with serving(folder, device) as port:
        session = session_to(port, folder)
        session.subscribe(notices.append)
        await session.open()
        assert await session.apply([Circuit(3, 3)], [Circuit(1, 2), Circuit(2, 1)]) == BatchResult()
        device.notify(f'<port-power-alarm xmlns="{POLATIS_SWITCH}"><port-id>17</port-id></port-power-alarm>')
        await eventually_async(lambda: notices, "the alarm")
        assert notices == [Alarm(Port("out", 1), "17", "port-power-alarm", "alarm")]
        await session.close()
        assert await session.wait_closed() == "closed by us"
    assert device.log[-3:] == ["unlock candidate", "unlock running", "close-session"]


async def test_switch_with_an_untrusted_host_key_gets_no_password(folder: Path) -> None:
    device = ScriptedDevice()
    async with serving(folder, device) as port:
        with pytest.raises(UntrustedHostKeyError, match=r"another SSH host key \(SHA256:.*ssh\.host_key"):
            await session_to(port, folder, host_key="other.pub").open()
    assert device.log == []


async def test_rejected_login_names_the_setting_to_correct(folder: Path) -> None:
    async with serving(folder, ScriptedDevice()) as port:
        with pytest.raises(SshLoginRefusedError, match=r"does not let 'blast' in by SSH: correct ssh\.user") as caught:
            await session_to(port, folder, password_file="wrong").open()
    assert "guess" not in str(caught.value)


async def test_switch_without_the_subsystem_names_the_remedy(folder: Path) -> None:
    async with serving(folder, ScriptedDevice()) as port:
        session = session_to(port, folder)
        session._transport = replace(session._transport, subsystem="none")
        with pytest.raises(
            UnreachableError, match=r"does not start the subsystem 'none' .* enable NETCONF on the switch"
        ):
            await session.open()


async def test_lost_connection_ends_the_session(folder: Path) -> None:
    device = ScriptedDevice(get=None)
    async with serving(folder, device) as port:
        session = session_to(port, folder)
        await session.open()
        reading = asyncio.create_task(session.read_powers())
        await eventually_async(lambda: "get opm-power" in device.log, "the request")
        device.end()
        with pytest.raises(UnreachableError):
            await reading
        assert "closed the connection" in await session.wait_closed()


async def test_flood_of_notifications_ends_the_session(folder: Path) -> None:
    device = ScriptedDevice()
    async with serving(folder, device) as port:
        session = session_to(port, folder)
        await session.open()
        for _ in range(3000):
            device.notify("<event/>")
        assert await session.wait_closed() == FLOOD


async def test_cancelled_open_leaves_no_connection(folder: Path) -> None:
    device = ScriptedDevice(get_config=None)
    async with serving(folder, device) as port:
        opening = asyncio.create_task(session_to(port, folder).open())
        await eventually_async(lambda: device.log, "the first request")
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
