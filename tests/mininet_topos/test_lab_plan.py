"""Plans: the numbers that the design fixes, and the errors of impossible plans."""

import re
import tomllib

import pytest

from mininet_topos.kernel.errors import PlanError
from mininet_topos.kernel.names import Names, is_lab_id, owner
from mininet_topos.lab.controller_config import Endpoints, Service, render
from mininet_topos.topology.plan import PRESETS, LabPlan, parse_splitters, preset

ENDPOINTS = Endpoints("127.0.0.1:9090", "127.0.0.1:6653", "127.0.0.1:10033")


def test_small_preset_matches_lab_of_demo():
    plan = preset("small")
    assert (plan.racks, plan.hosts_per_rack, dict(plan.splitters)) == (8, 2, {4: 2})
    assert plan.ocs_ports == 8 + 2 * 4
    assert [(s.name, s.input, s.outputs) for s in plan.splitter_plans] == [
        ("s1", 9, (9, 10, 11, 12)),
        ("s2", 13, (13, 14, 15, 16)),
    ]
    assert plan.rate_factor == 100


def test_paper_testbed_has_four_logical_racks_on_one_datapath():
    plan = preset("paper-testbed")
    assert list(plan.datapaths) == [1]
    assert [rack.name for rack in plan.datapaths[1]] == ["r1", "r2", "r3", "r4"]
    assert [rack.hosts[0].port for rack in plan.rack_plans] == [1, 101, 201, 301]
    assert [s.fan_out for s in plan.splitter_plans] == [4, 4]


def test_hosts_have_fixed_addresses_in_one_subnet():
    host = LabPlan(racks=3).rack_plans[2].hosts[1]
    assert (host.name, host.ip, host.mac, host.port) == ("r3h2", "10.0.3.2", "02:b1:a5:00:03:02", 2)


def test_rendered_configuration_matches_controller_format():
    config = tomllib.loads(render(preset("small"), ENDPOINTS))
    assert config["controller"] == {"thrift": "127.0.0.1:9090", "openflow": "127.0.0.1:6653", "keep_warm_ms": 0}
    assert "policy" not in config, "the controller's default"
    assert config["openflow"] == {
        "group_network": "239.77.0.0/16",
        "group_port": 5001,
        "dscp": 46,
        "priority": 40000,
        "guard_priority": 30000,
        "step_timeout_ms": 2000,
    }
    assert config["fabric"] == {"optical_rate_gbps": 0.1}
    assert config["journal"] == {"in_memory": True}
    switch = {"name": "ocs1", "address": "127.0.0.1:10033", "inputs": 16, "outputs": 16, "light_check": "off"}
    assert config["optical_switch"] == [switch | {"driver": "tl1", "dialect": "glimmerglass"}]
    assert config["rack"][0] == {
        "name": "r1",
        "datapath": "0000000000000001",
        "optical_ports": [{"port": 91, "optical_switch": "ocs1", "input": 1, "output": 1}],
        "hosts": [{"name": "r1h1", "port": 1, "ip": "10.0.1.1"}, {"name": "r1h2", "port": 2, "ip": "10.0.1.2"}],
    }
    assert config["splitter"][1] == {
        "name": "s2",
        "optical_switch": "ocs1",
        "input": 13,
        "outputs": [13, 14, 15, 16],
    }
    assert len(config["rack"]) == 8


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"racks": 1}, "racks is 1, but a lab can have 2 to 32"),
        ({"hosts_per_rack": 0}, "hosts_per_rack is 0"),
        ({"splitters": {1: 1}}, "a splitter's ways is 1"),
        ({"splitters": {4: -1}}, "1:4 splitters is -1"),
        ({"light_rate_mbps": float("nan")}, "light_rate_mbps is nan"),
        ({"oversubscription": 0}, "oversubscription is 0"),
        ({"mtu": 9001}, "mtu is 9001"),
    ],
)
def test_plan_rejects_impossible_values(changes, sentence):
    with pytest.raises(PlanError, match=re.escape(sentence)):
        LabPlan(**changes)


def test_unknown_preset_error_lists_presets():
    with pytest.raises(PlanError, match="small"):
        preset("huge")


def test_preset_accepts_changes():
    assert preset("paper-testbed", hosts_per_rack=3).hosts_per_rack == 3
    assert PRESETS["paper-testbed"].hosts_per_rack == 1


def test_parse_splitters_reads_counts():
    assert parse_splitters("4x2,8x1") == {4: 2, 8: 1}
    assert parse_splitters("4x2,4x1") == {4: 3}
    assert parse_splitters("") == {}


@pytest.mark.parametrize("text", ["4", "x2", "4x", "ax2", "4x-1", "4x2;8x1"])
def test_parse_splitters_rejects_invalid_text(text):
    with pytest.raises(PlanError, match="4x2,8x1"):
        parse_splitters(text)


def test_interface_names_contain_lab_id():
    names = Names("b3f2")
    assert names.optical_at_tor(1, 1) == "b3f2t1o1"
    assert owner(names.bridge(12)) == owner(names.uplink_at_tor(32)) == "b3f2"


@pytest.mark.parametrize("name", ["eth0", "br0", "bond0", "b3f2", "b3f2-eth1", "xb3f2t1", "b3g2t1", "b3f2t1o1x", "s1"])
def test_foreign_interfaces_have_no_owner(name):
    assert owner(name) is None


@pytest.mark.parametrize("text", ["", "b3f", "b3f22", "c3f2", "B3F2", "b3f2\n", "../b3f2"])
def test_invalid_lab_ids_are_rejected(text):
    assert not is_lab_id(text)
    with pytest.raises(PlanError):
        Names(text)


def test_service_options_appear_in_configuration():
    service = Service(min_lease_ms=5, policy="paper", keep_warm_ms=7)
    config = tomllib.loads(render(preset("small"), ENDPOINTS, service))
    assert config["policy"] == {"name": "paper"}
    assert config["controller"]["min_lease_ms"] == 5 and config["controller"]["keep_warm_ms"] == 7
