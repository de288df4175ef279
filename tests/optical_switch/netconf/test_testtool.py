"""An independent NETCONF server: OpenDaylight's netconf-testtool, which simulates a device by its YANG modules.

It has a candidate, whose lock it grants to every session, no lock of the running configuration, and no notifications.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import asyncssh
import pytest

from optical_switch.drivers import SwitchTarget
from optical_switch.errors import RefusedError
from optical_switch.model import Circuit
from optical_switch.netconf.netconf_session import NetconfSwitchSession
from optical_switch.netconf.polatis import MAX_PORT, PortNumbering
from optical_switch.session import BatchResult
from optical_switch.ssh import SshTransport
from tests.support.controller.ssh_server import free_port
from tests.support.needs import ROOT
from tests.support.waiting import eventually

JAR = "org.opendaylight.netconf:netconf-testtool:6.0.4:jar:executable"
YANG = ROOT.parent / "shared" / "data" / "yang"
STARTED = "All simulated devices started successfully"
SECONDS = 60.0
"""For each answer, and for the start: Java compiles while it works."""


pytestmark = [
    pytest.mark.java,
    pytest.mark.published,
    pytest.mark.skipif(not YANG.is_dir(), reason=f"needs the YANG modules in {YANG}"),
]


@pytest.fixture(scope="module")
def port(tmp_path_factory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("testtool")
    schemas, log, number = folder / "yang", folder / "log", free_port()
    schemas.mkdir()
    for module in YANG.glob("*switch*.yang"):
        shutil.copy(module, schemas)
    words = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={JAR}", f"-DoutputDirectory={folder}"]
    subprocess.run(words, check=True, timeout=240)
    (jar,) = folder.glob("*.jar")
    command = [
        "java",
        "-Xmx512m",
        "-jar",
        str(jar),
        "--schemas-dir",
        str(schemas),
        "--md-sal",
        "true",
        "--exi",
        "false",
    ]
    command += ["--ip", "127.0.0.1", "--starting-port", str(number)]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        eventually(lambda: STARTED in log.read_text() or process.poll() is not None, "the simulator", within=SECONDS)
        assert process.poll() is None, log.read_text()
        yield number
    finally:
        process.terminate()
        process.wait(30)


@asynccontextmanager
async def opened(port: int, first_output: int = 17) -> AsyncIterator[NetconfSwitchSession]:
    """Open a session that removes all circuits at its end."""
    key = await asyncssh.get_server_host_key("127.0.0.1", port)
    assert key is not None
    transport = SshTransport("admin", ([key], [], []), password="admin", subsystem="netconf", seconds=SECONDS)
    target = SwitchTarget("ocs1", "127.0.0.1", port, 16, 16, SECONDS)
    session = NetconfSwitchSession(target, transport, PortNumbering(first_output))
    await session.open()
    try:
        yield session
        assert await session.apply(await circuits(session), []) == BatchResult()
        assert await circuits(session) == []
    finally:
        await session.close()
    assert await session.wait_closed() == "closed by us"


async def circuits(session: NetconfSwitchSession) -> Sequence[Circuit]:
    return sorted(reading.circuit for reading in await session.read_circuits())


async def test_circuits_are_set_moved_and_removed_together(port: int) -> None:
    async with opened(port) as session:
        assert await session.apply([], [Circuit(number, number) for number in range(1, 9)]) == BatchResult()
        moves = [Circuit(1, 1), Circuit(2, 2), Circuit(3, 3)], [Circuit(1, 2), Circuit(2, 1), Circuit(9, 3)]
        assert await session.apply(*moves) == BatchResult()
        expected = [Circuit(1, 2), Circuit(2, 1), *(Circuit(number, number) for number in range(4, 9)), Circuit(9, 3)]
        assert await circuits(session) == expected


async def test_refused_change_leaves_everything_as_it_was(port: int) -> None:
    async with opened(port) as session:
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()
        result = await session.apply([], [Circuit(2, 2), Circuit(1, 3)])
        assert result.error is not None and result.error.code == "data-exists"
        assert await circuits(session) == [Circuit(1, 1)]
        assert await session.apply([], [Circuit(3, 3)]) == BatchResult()
        assert await circuits(session) == [Circuit(1, 1), Circuit(3, 3)], "the refused edit was discarded"


async def test_circuit_with_another_output_is_not_removed(port: int) -> None:
    async with opened(port) as session:
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()
        result = await session.apply([Circuit(1, 2), Circuit(5, 5)], [])
        assert set(result.refused) == {Circuit(1, 2)}
        assert await circuits(session) == [Circuit(1, 1)]


async def test_port_outside_the_model_is_refused(port: int) -> None:
    async with opened(port, first_output=MAX_PORT) as session:
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()
        result = await session.apply([], [Circuit(2, 2)])
        assert result.error is not None and "65536" not in result.error.code
        assert await circuits(session) == [Circuit(1, 1)]


async def test_device_that_locks_its_candidate_alone_is_used_without_a_warning(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(port) as session:
        assert await session.apply([], [Circuit(1, 1)]) == BatchResult()
        assert session._without_lock == {"running"}
        assert session.capabilities.atomic and "has no locks" not in caplog.text


async def test_attenuators_are_set_by_the_model(port: int) -> None:
    async with opened(port) as session:
        assert not session.capabilities.attenuates
        await session.set_attenuation({1: -3.25, 2: None})
        with pytest.raises(RefusedError):
            await session.set_attenuation({3: 1e300})
    async with opened(port) as session:
        assert session.capabilities.attenuates
        assert await session.read_ports() == [] == await session.read_powers()
