"""The benchmark of the drivers of optical switches: both sides set the circuit, and each driver is configured."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytestmark = [pytest.mark.redis]
pytest.importorskip("asyncssh")
pytest.importorskip("grpc")

from benchmarks.control_plane.drivers.bare_exchanges import BARE_EXCHANGES, CIRCUIT  # noqa: E402
from benchmarks.control_plane.drivers.executor_steps import ExecutorSteps  # noqa: E402
from benchmarks.control_plane.drivers.switch_endpoints import DRIVERS, SwitchEndpoint  # noqa: E402
from benchmarks.control_plane.rig import Rig, Size  # noqa: E402
from benchmarks.control_plane.switch_steps import running_switch, step_lines  # noqa: E402
from blast_controller.configuration.reading import parse  # noqa: E402
from optical_switch.model import Circuit  # noqa: E402

PORTS = 8


@pytest.mark.parametrize("driver", DRIVERS)
def test_both_sides_of_a_step_set_and_remove_the_circuit(driver: str) -> None:
    with running_switch(driver, PORTS) as (switch, endpoint):

        async def exchange() -> None:
            bare = BARE_EXCHANGES[driver](endpoint)
            await bare.open()
            await bare.connect()
            assert switch.ask()["circuits"] == 1
            await bare.disconnect()
            await bare.close()

        asyncio.run(exchange())
        assert switch.ask()["circuits"] == 0
        with ExecutorSteps(endpoint) as executor:
            assert executor.connect([CIRCUIT]).failures == []
            assert switch.ask()["circuits"] == 1
            assert executor.disconnect([CIRCUIT]).transactions == 1
        assert switch.ask()["circuits"] == 0


@pytest.mark.parametrize("driver", DRIVERS)
def test_refused_input_fails_its_own_circuit_only(driver: str) -> None:
    circuits = [Circuit(number, number) for number in range(1, PORTS + 1)]
    with running_switch(driver, PORTS, [3]) as (switch, endpoint), ExecutorSteps(endpoint) as executor:
        outcome = executor.connect(circuits)
        assert len(outcome.failures) == 1
        assert switch.ask()["circuits"] == PORTS - 1
        # TL1 names no port, so that the batch is halved; one transaction shows the others what to leave out.
        assert outcome.transactions == {"tl1": 7, "netconf": 2}.get(driver, 1)


@pytest.mark.parametrize("driver", DRIVERS)
def test_controller_accepts_the_configuration_of_each_driver(driver: str, tmp_path: Path) -> None:
    endpoint = SwitchEndpoint(driver, PORTS, "127.0.0.1:1", str(tmp_path / "redis.sock"), "ssh-ed25519 AAAA")
    table = ["[[optical_switch]]", 'name = "ocs"', "inputs = 8", "outputs = 8"]
    hosts = 'hosts = [{ name = "h1", port = 1, ip = "10.0.0.1" }]'
    rack = ["[[rack]]", 'name = "r1"', 'datapath = "0000000000000001"', hosts]
    config = parse("\n".join([*table, *endpoint.keys(tmp_path), *rack]))
    assert driver.startswith(config.optical_switch[0].driver)


def test_controller_of_the_rig_connects_to_a_switch_by_another_driver_than_tl1() -> None:
    # It raises TimeoutError if a device is not connected.
    with Rig(Size(2, 1, driver="netconf")):
        pass


def test_ratio_beyond_the_bar_is_reported() -> None:
    row = {"driver": "netconf", "ratio": 2.4, "within_bar": False}
    assert any("MISSED" in line for line in step_lines([row]))
    assert not any("MISSED" in line for line in step_lines([row | {"within_bar": True}]))
