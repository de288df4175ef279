"""`probe` on switches that are reached by SSH: NETCONF, and TL1 with its driver."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from blast_base.endpoint import Endpoint
from blast_controller.cli.switch.probe.failures import ProbeFailureError
from blast_controller.cli.switch.probe.views import json_report, text_report
from optical_switch.emulator.light import no_light
from optical_switch.model import Circuit, Port
from tests.blast_controller.switch_command.peers import (
    HOST,
    configured,
    probed,
)
from tests.support.controller.tl1 import emulated
from tl1_driver.dialects import DIALECTS


@contextlib.asynccontextmanager
async def netconf(files: Path) -> AsyncIterator[tuple[Endpoint, list[str]]]:
    """Run a switch; yield its address and the settings for it, without the host key."""
    pytest.importorskip("asyncssh")
    from optical_switch.emulator.netconf_server.server import serve_netconf
    from optical_switch.emulator.netconf_server.settings import NetconfSwitchSettings, UserAccount

    async def apply(_removed: Sequence[Circuit], _added: Sequence[Circuit]) -> None:
        pass

    settings = NetconfSwitchSettings(accounts={"admin": UserAccount("open sesame")}, connect_seconds=0.0)
    async with serve_netconf(4, 4, apply=apply, settings=settings, power=no_light) as switch:
        (files / "host_key").write_text(f"{switch.host_key}\n")
        await switch.another_writer(Circuit(2, 3))
        yield Endpoint(*switch.address), ["ssh.user=admin", f"ssh.password_file={files}/password"]


async def test_netconf_is_read_with_ports_numbered_through(files: Path) -> None:
    async with netconf(files) as (endpoint, settings):
        report = await probed(endpoint, *settings, f"ssh.host_key={files}/host_key")
    assert (report.table["driver"], report.counts) == ("netconf", (4, 4))
    assert [one.circuit for one in report.readings.circuits] == [Circuit(2, 3)]
    assert [one.name for one in report.readings.ports if one.port == Port("out", 1)] == ["5"]
    assert any("half of the 8 ports" in remark for remark in report.remarks)
    assert configured(report).ssh.user == "admin"
    assert "open sesame" not in report.toml + json_report(report) + text_report(report, 100)


async def test_given_number_of_inputs_is_used(files: Path) -> None:
    async with netconf(files) as (endpoint, settings):
        report = await probed(endpoint, *settings, f"ssh.host_key={files}/host_key", "inputs=4", "outputs=4")
        assert report.remarks == () and report.counts == (4, 4)
        with pytest.raises(ProbeFailureError, match=r"correct first_output"):
            await probed(endpoint, *settings, f"ssh.host_key={files}/host_key", "inputs=7", "outputs=1")


async def test_unknown_host_key_is_shown_and_nothing_is_sent(files: Path) -> None:
    async with netconf(files) as (endpoint, settings):
        for given in ([], settings):
            with pytest.raises(ProbeFailureError) as caught:
                await probed(endpoint, *given)
            explanation, line = caught.value.notes
            assert caught.value.status == 2 and "ssh.host_key" in str(caught.value)
            assert line == (files / "host_key").read_text().strip()
            assert "SHA256:" in explanation and "not trusted" in explanation
        (files / "key").write_text(f"{line}\n")
        assert (await probed(endpoint, *settings, f"ssh.host_key={files}/key")).counts == (4, 4)


async def test_other_host_key_than_the_trusted_one_is_shown(files: Path) -> None:
    async with netconf(files) as (endpoint, settings):
        import asyncssh

        asyncssh.generate_private_key("ssh-ed25519").write_public_key(files / "other")
        with pytest.raises(ProbeFailureError, match="another SSH host key") as caught:
            await probed(endpoint, *settings, f"ssh.host_key={files}/other")
    assert caught.value.status == 1 and caught.value.notes[1] == (files / "host_key").read_text().strip()


async def test_refused_ssh_login_names_the_setting(files: Path) -> None:
    async with netconf(files) as (endpoint, _):
        settings = ["ssh.user=admin", f"ssh.password_file={files}/wrong", f"ssh.host_key={files}/host_key"]
        with pytest.raises(ProbeFailureError, match=r"does not let 'admin' in by SSH: correct ssh\.user"):
            await probed(endpoint, *settings)


async def test_tl1_over_ssh_is_read_with_its_driver(files: Path) -> None:
    asyncssh = pytest.importorskip("asyncssh")
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_public_key(files / "host_key")

    class Login(asyncssh.SSHServer):
        def password_auth_supported(self) -> bool:
            return True

        def validate_password(self, username: str, password: str) -> bool:
            return (username, password) == ("admin", "open sesame")

        def session_requested(self) -> asyncssh.SSHServerSession:
            return Shell()

    class Shell(asyncssh.SSHServerSession):
        """A shell that speaks TL1; there are no subsystems."""

        def connection_made(self, chan) -> None:
            self.channel = chan
            self.received = asyncio.Queue[bytes]()

        def shell_requested(self) -> bool:
            return True

        def session_started(self) -> None:
            self.task = asyncio.create_task(self.relay())

        def data_received(self, data: bytes, datatype: object) -> None:
            self.received.put_nowait(data)

        def connection_lost(self, exc: Exception | None) -> None:
            self.task.cancel()

        async def relay(self) -> None:
            reader, writer = await asyncio.open_connection(HOST, lab.port)

            async def answer() -> None:
                while data := await reader.read(1 << 16):
                    self.channel.write(data)

            answering = asyncio.create_task(answer())
            try:
                while True:
                    writer.write(await self.received.get())
            finally:
                answering.cancel()
                writer.transport.abort()

    async with emulated(DIALECTS["glimmerglass"]) as lab:
        server = await asyncssh.listen(HOST, 0, server_factory=Login, server_host_keys=[key], encoding=None)
        endpoint = Endpoint(HOST, server.get_port())
        settings = ["ssh.user=admin", f"ssh.password_file={files}/password", f"ssh.host_key={files}/host_key"]
        try:
            report = await probed(endpoint, *settings, "dialect=glimmerglass", driver="tl1")
            with pytest.raises(ProbeFailureError, match=r"does not start the subsystem 'netconf' .*; .*--driver tl1"):
                await probed(endpoint, *settings)
        finally:
            server.close()
            await server.wait_closed()
    assert report.counts == (8, 8) and "by SSH" in report.summary
    assert configured(report).ssh.password_file == files / "password"
