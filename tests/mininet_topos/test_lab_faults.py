"""Fault commands at the prompt of a lab, and the environment of its hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from blast_base.endpoint import Endpoint
from mininet_topos.kernel.controller_namespace import Side
from mininet_topos.kernel.errors import PlanError
from mininet_topos.kernel.names import Names
from mininet_topos.lab.fault_commands import (
    DeniedFault,
    is_partition,
    read_decibels,
    read_denied,
    read_fiber,
    read_partition,
    read_rebooted,
    read_seconds,
)
from mininet_topos.topology.faults import FaultServer, fiber
from mininet_topos.topology.plan import LabPlan
from mininet_topos.topology.power import PowerModel
from mininet_topos.topology.switch_servers import ServedSwitch
from optical_switch.emulator.crossbar import Crossbar
from optical_switch.emulator.hardware import OpticalHardware

PLAN = LabPlan(racks=4, hosts_per_rack=2, optical_ports_per_rack=2, splitters={4: 2})


async def no_light_paths(removed, added) -> None:
    return None


def test_read_fiber_maps_names_to_fibers_of_lab():
    outputs = [f"{splitter.name}/{output}" for splitter in PLAN.splitter_plans for output in splitter.outputs]
    typed = [["r3", "rx"], ["r3", "rx1"], ["r3", "rx2"], ["s1"], ["s2"], *([output] for output in outputs)]
    ports = [fiber(PLAN, read_fiber(PLAN, words)) for words in typed]
    assert ports[0] == ports[1] and len(set(ports)) == len(typed) - 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["r3"], "name a fiber"),
        (["r3", "rx3"], "2 optical port"),
        (["r3", "rx٣"], "2 optical port"),
        (["r33", "rx"], "did you mean r3?"),
        (["s1/1"], "has no output '1'"),
        (["s9"], "there is no 's9'"),
    ],
)
def test_read_fiber_rejects_invalid_names_with_reason(words, sentence):
    with pytest.raises(PlanError, match=sentence.replace("?", r"\?")):
        read_fiber(PLAN, words)


def test_read_denied_parses_inputs_outputs_all_and_none():
    assert read_denied(PLAN, ["ocs1", "in", "3,4"]) == DeniedFault(inputs=(3, 4))
    assert read_denied(PLAN, ["ocs1", "out", "7"]) == DeniedFault(outputs=(7,))
    assert read_denied(PLAN, ["ocs1", "all"]) == DeniedFault(everything=True)
    assert read_denied(PLAN, ["ocs1", "none"]) == DeniedFault()


@pytest.mark.parametrize(
    "words", [[], ["ocs2", "all"], ["ocs1"], ["ocs1", "in"], ["ocs1", "in", "0"], ["ocs1", "in", "99"]]
)
def test_read_denied_rejects_invalid_arguments(words):
    with pytest.raises(PlanError):
        read_denied(PLAN, words)


def test_read_seconds_and_decibels_parse_units():
    assert read_seconds(["ocs1", "500ms"]) == 0.5
    assert read_decibels(["r3", "rx", "5dB"]) == 5.0
    for words in ([], ["ocs1"], ["ocs1", "soon"], ["r1", "2s"], ["ocs1", "1", "2"]):
        with pytest.raises(PlanError):
            read_seconds(words)
    with pytest.raises(PlanError):
        read_decibels(["r3", "rx"])


def test_read_rebooted_accepts_racks_hosts_switch_and_controller():
    assert [read_rebooted(PLAN, [name]) for name in ("r2", "r2h1", "ocs1", "controller")] == [
        "r2", "r2h1", "ocs1", "controller",
    ]  # fmt: skip
    with pytest.raises(PlanError, match="did you mean controller"):
        read_rebooted(PLAN, ["controler"])
    with pytest.raises(PlanError, match="name a rack"):
        read_rebooted(PLAN, [])


def test_fault_server_replaces_denied_ports_of_switch():
    hardware = OpticalHardware(Crossbar(PLAN.ocs_ports, PLAN.ocs_ports), no_light_paths, connect_seconds=0.0)
    switch = ServedSwitch(Endpoint("127.0.0.1", 1), hardware, cut=lambda: None)
    server = FaultServer(switch, PowerModel((), ()), Names("b000"), lambda lines: None)
    assert server._answer(b'{"denied": {"inputs": [3], "outputs": [], "everything": false}}') == {"done": True}
    assert hardware.faults.refused_inputs == {3} and not hardware.faults.refuse_all
    assert server._answer(b'{"denied": {"inputs": [], "outputs": [7], "everything": true}}') == {"done": True}
    faults = hardware.faults
    assert (faults.refused_inputs, faults.refused_outputs) == (set(), {7}) and faults.refuse_all
    assert "refused" in server._answer(b'{"denied": {"inputs": "x"}}')


def test_hosts_file_and_environment_of_lab_host():
    from mininet_topos.lab.host_environment import environment, hosts_file, hosts_of

    hosts = hosts_of(PLAN)
    text = hosts_file("127.0.0.1 localhost\n\n", hosts)
    assert text.startswith("127.0.0.1 localhost\n10.") and text.endswith("\n")
    assert {line.split()[1] for line in text.splitlines()[1:]} == set(hosts) and len(hosts) == 8
    variables = environment("r1h1", "127.0.0.1:9090", Path("/run/secret"), Path("/dev/shm/lab"))
    assert (variables["BLAST_HOST"], variables["BLAST_CONTROLLER"]) == ("r1h1", "127.0.0.1:9090")
    assert variables["BLAST_FOLDER"] == "/dev/shm/lab/r1h1"


@pytest.mark.parametrize(
    ("typed", "number", "sides"),
    [
        ("controller2 etcd", 2, [Side.ETCD]),
        ("controller1 devices clients", 1, [Side.DEVICES, Side.CLIENTS]),
        ("controller3", 3, list(Side)),
    ],
)
def test_read_partition_selects_controller_and_sides(typed, number, sides):
    words = typed.split()
    assert is_partition(words) and read_partition(words) == (number, sides)


def test_read_partition_rejects_unknown_side():
    assert not is_partition(["r3", "rx"]) and not is_partition(["controller"]) and not is_partition([])
    with pytest.raises(PlanError, match="from 'moon': use etcd, devices, clients"):
        read_partition(["controller2", "moon"])
