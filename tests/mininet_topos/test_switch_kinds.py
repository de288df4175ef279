"""The kinds of optical switches of a lab: the controller's driver reaches each with the keys that the table has."""

import os
from contextlib import asynccontextmanager

import pytest

from blast_base.endpoint import Endpoint
from blast_controller.configuration.reading import parse
from blast_controller.configuration.switch_access import read_access
from mininet_topos.kernel.errors import HostError, PlanError
from mininet_topos.lab.controller_config import Endpoints, Service, render
from mininet_topos.topology.plan import LabPlan
from mininet_topos.topology.power import SENSITIVITY_DBM, PowerModel, transmitter_inputs
from mininet_topos.topology.switch_kinds import DEFAULT_KIND, KINDS, switch_kind
from mininet_topos.topology.switch_servers import LabSwitchSettings
from optical_switch.drivers import DEFAULT, drivers
from optical_switch.model import Alarm, Circuit, CircuitState, Port
from tests.support.waiting import eventually_async

PLAN = LabPlan(racks=4, hosts_per_rack=1, splitters={2: 1})
ROOT, LEAF, OTHER = Circuit(1, 5), Circuit(5, 2), Circuit(6, 3)
"""Splitter s1 is fed by output 5, and its outputs enter the switch at 5 and 6."""


@pytest.fixture(params=KINDS)
def kind(request):
    kind = KINDS[request.param]
    try:
        kind.check()
    except HostError as error:
        pytest.skip(str(error))
    return kind


class LabSwitch:
    """A switch of a kind as a lab has it, without packets."""

    def __init__(self, folder):
        self.lit, self.folder = set(), folder
        self.model = PowerModel(transmitter_inputs(PLAN.ocs_ports, PLAN.splitter_plans), PLAN.splitter_plans)

    async def apply(self, removed, added):
        self.lit = self.lit - set(removed) | set(added)

    def settings(self, port=0):
        listen, receivers = Endpoint("127.0.0.1", port), self.model.transmitters
        return LabSwitchSettings(
            listen, PLAN.ocs_ports, self.apply, 0.001, self.model, receivers, SENSITIVITY_DBM, self.folder
        )

    @asynccontextmanager
    async def session(self, kind, served, listener):
        """Open a session of the controller's driver, by the configuration that the lab writes for it."""
        endpoints = Endpoints("127.0.0.1:1", "127.0.0.1:2", str(served.address))
        text = render(PLAN, endpoints, Service(switch=kind, switch_folder=self.folder))
        (section,) = parse(text).optical_switch
        assert section.driver == kind.name
        session = read_access(section).new_session()
        session.subscribe(listener)
        await session.open()
        try:
            yield session
        finally:
            await session.close()


@pytest.fixture
def bench(tmp_path):
    return LabSwitch(tmp_path)


def test_kinds_are_all_drivers_and_default_is_that_of_controller():
    assert KINDS.keys() == drivers().keys() and DEFAULT_KIND == DEFAULT
    with pytest.raises(PlanError, match="no kind of optical switch 'tl2': choose one of tl1, sonic-ocs, netconf"):
        switch_kind("tl2")


def test_missing_redis_is_one_sentence_with_command(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match=r"needs redis-server: run apt-get install redis-server$"):
        KINDS["sonic-ocs"].check()


def test_missing_library_names_extra(monkeypatch):
    monkeypatch.setattr("blast_base.extras.find_spec", lambda name: None)
    with pytest.raises(HostError, match=r"netconf cannot be served: asyncssh not installed: .*\[ssh-switches\]"):
        KINDS["netconf"].check()


async def test_driver_sets_circuits_and_shows_raised_loss(kind, bench):
    notices = []
    async with kind.serve(bench.settings()) as served, bench.session(kind, served, notices.append) as session:
        assert (await session.apply([], [ROOT, LEAF, OTHER])).error is None

        async def connected():
            states = {reading.circuit: reading.state for reading in await session.read_circuits()}
            return states == dict.fromkeys((ROOT, LEAF, OTHER), CircuitState.CONNECTED)

        await eventually_async(connected, "all circuits")
        assert bench.lit == {ROOT, LEAF, OTHER}
        bench.model.raised[Port("in", 5)] = 30.0
        served.hardware.faults.extra_loss_db = {LEAF: 30.0}
        notices.clear()
        served.hardware.changed()
        served.report_output(2, False)
        if session.capabilities.measures_loss:
            await eventually_async(lambda: _is_loss_of(LEAF, notices), "the loss of the circuit")
            return
        await eventually_async(lambda: Port("out", 2) in _alarmed(notices), "an alarm at its output")
        powers = dict(await session.read_powers())
        assert powers[Port("out", 2)] < SENSITIVITY_DBM < powers[Port("out", 3)]
        assert Port("out", 3) not in _alarmed(notices)


def _is_loss_of(circuit, notices):
    return any(getattr(notice, "circuit", None) == circuit and getattr(notice, "db", 0) > 30 for notice in notices)


def _alarmed(notices):
    return {notice.port for notice in notices if isinstance(notice, Alarm) and not notice.cleared}


async def test_power_cycle_loses_circuits_and_keeps_address_and_keys(kind, bench):
    async with kind.serve(bench.settings()) as served, bench.session(kind, served, print) as session:
        await session.apply([], [ROOT])
        address = served.address
    bench.lit.clear()
    async with kind.serve(bench.settings(address.port)) as served, bench.session(kind, served, print) as session:
        assert served.address == address
        assert await session.read_circuits() == [] and bench.lit == set()


async def test_cut_ends_sessions_and_keeps_circuits(kind, bench):
    async with kind.serve(bench.settings()) as served, bench.session(kind, served, print) as session:
        await session.apply([], [ROOT])
        await eventually_async(lambda: bench.lit == {ROOT}, "the circuit")
        served.cut()
        assert await session.wait_closed()
        assert bench.lit == {ROOT}


async def test_address_in_use_is_reported(kind, bench):
    async with KINDS["tl1"].serve(bench.settings()) as other:
        with pytest.raises(PlanError, match=f"cannot listen on 127.0.0.1:{other.address.port}"):
            async with kind.serve(bench.settings(other.address.port)):
                pass


async def test_keys_of_netconf_are_readable_by_owner_only(bench):
    kind = KINDS["netconf"]
    async with kind.serve(bench.settings()):
        modes = {path.name: path.stat().st_mode & 0o077 for path in bench.folder.iterdir()}
    assert set(modes) == {"user_key", "user_key.pub", "host_key", "host_key.pub"}
    assert modes["user_key"] == modes["host_key"] == 0 and os.access(bench.folder / "user_key", os.R_OK)
