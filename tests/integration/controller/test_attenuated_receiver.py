"""A receiver with too much power: a controller with a NETCONF switch rejects it, or grants it behind an attenuator."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks.control_plane.child import Child
from benchmarks.control_plane.drivers.switch_endpoints import PASSWORD, USER, SwitchEndpoint
from benchmarks.control_plane.rig import BLAST, FIRST_OPTICAL_PORT, START_SECONDS, await_devices, tors_command
from blast_api.ttypes import MulticastRequest
from blast_client import Client, Rejected
from optical_switch.emulator.faults import Faults
from optical_switch.emulator.hardware import PASS_LOSS_DB
from optical_switch.emulator.netconf_server.server import serve_netconf
from optical_switch.emulator.netconf_server.settings import NetconfSwitchSettings, UserAccount
from optical_switch.model import Circuit, Port

PORTS = 4
LAUNCH_DBM, OVERLOAD_DBM = 2.0, -3.0
"""After one pass through the switch, the receiver would get 3.5 dB more than its overload."""
RECEIVER = Port("out", 2)
METER_ERROR_DB = -1.0
"""The meter before the receiver reads too little, by as much as the power budget accounts for."""
CONFIG = f"""
[controller]
thrift = "127.0.0.1:0"
openflow = "127.0.0.1:0"
[journal]
in_memory = true
[fabric]
launch_dbm = {LAUNCH_DBM}
sensitivity_dbm = -20.0
overload_dbm = {OVERLOAD_DBM}
[[rack]]
name = "r1"
datapath = "0000000000000001"
optical_ports = [{{ port = {FIRST_OPTICAL_PORT}, optical_switch = "ocs1", input = 1, output = 1 }}]
hosts = [{{ name = "h1", port = 1, ip = "10.0.0.1" }}]
[[rack]]
name = "r2"
datapath = "0000000000000002"
optical_ports = [{{ port = {FIRST_OPTICAL_PORT}, optical_switch = "ocs1", input = 2, output = {RECEIVER.number} }}]
hosts = [{{ name = "h2", port = 1, ip = "10.0.0.2" }}]
[[optical_switch]]
name = "ocs1"
inputs = {PORTS}
outputs = {PORTS}
pass_loss_db = {PASS_LOSS_DB}
"""
REQUEST = MulticastRequest("attenuated", "h1", ["h2"], 10**9)


def lit_by_the_sender(circuits: Sequence[Circuit]) -> Mapping[Port, float]:
    """Return the power of the transmitter at input 1, and behind each circuit from there."""
    lit = {Port("out", circuit.output): LAUNCH_DBM - PASS_LOSS_DB for circuit in circuits if circuit.input == 1}
    return {Port("in", 1): LAUNCH_DBM, **lit}


async def no_fibers(_removed: Sequence[Circuit], _added: Sequence[Circuit]) -> None:
    """Set no real light paths."""


@contextlib.contextmanager
def controller(folder: Path, keys: Sequence[str]) -> Iterator[Client]:
    """Run a controller with two emulated ToRs; `keys` are further lines of its optical switch."""
    config, log = folder / "blast.toml", folder / "log"
    config.write_text("\n".join((CONFIG, *keys)))
    with contextlib.ExitStack() as undo:
        process = Child("controller", [*BLAST, "controller", "run", "--config", str(config)], log)
        undo.callback(process.stop)
        addresses = process.next(START_SECONDS)
        tors = Child("ToRs", tors_command(addresses["openflow"], 2, str(FIRST_OPTICAL_PORT)), log)
        undo.callback(tors.stop)
        tors.next(START_SECONDS)
        await_devices(Client(addresses["thrift"]))
        yield undo.enter_context(Client(addresses["thrift"]))


async def test_receiver_with_too_much_power_is_granted_behind_an_attenuator_only(tmp_path: Path) -> None:
    settings = NetconfSwitchSettings({USER: UserAccount(PASSWORD)}, connect_seconds=0.0)
    faults = Faults(power_error_db={RECEIVER: METER_ERROR_DB})
    served = serve_netconf(PORTS, PORTS, apply=no_fibers, settings=settings, power=lit_by_the_sender, faults=faults)
    async with served as switch:
        address = "{}:{}".format(*switch.address)
        endpoint = SwitchEndpoint("netconf", PORTS, address, host_key=switch.host_key)
        keys = endpoint.keys(tmp_path)

        def rejected_without_attenuators() -> None:
            with (
                controller(tmp_path, keys) as client,
                pytest.raises(Rejected, match=r"3\.5 dB too much power") as error,
            ):
                client.request(REQUEST)
            assert error.value.code == "power_budget"

        async def received() -> float:
            """Return the true power at the receiver, from its meter."""
            session = endpoint.access().new_session()
            await session.open()
            try:
                return {port: dbm - METER_ERROR_DB for port, dbm in await session.read_powers()}[RECEIVER]
            finally:
                await session.close()

        def granted_with_attenuators() -> float:
            with controller(tmp_path, [*keys, "attenuator_range_db = 20.0"]) as client:
                (margin,) = client.request(REQUEST).margins
                assert (margin.maxDbm, margin.limitingElement) == (OVERLOAD_DBM, "attenuator:ocs1/2")
                return asyncio.run_coroutine_threadsafe(received(), loop).result(START_SECONDS)

        loop = asyncio.get_running_loop()
        await asyncio.to_thread(rejected_without_attenuators)
        assert not switch.hardware.crossbar.circuits
        power = await asyncio.to_thread(granted_with_attenuators)
        assert switch.hardware.crossbar.circuits == (Circuit(1, RECEIVER.number),)
        assert OVERLOAD_DBM - 2.0 <= power <= OVERLOAD_DBM
