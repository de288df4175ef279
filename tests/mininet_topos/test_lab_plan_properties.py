"""Properties of any plan: unique numbers, kernel names that fit, and correct rules of the packet network."""

import tomllib
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mininet_topos.kernel.names import Names, owner
from mininet_topos.lab.controller_config import Endpoints, render
from mininet_topos.topology.packet_rules import COOKIE, COOKIE_MASK, forwarding_rules
from mininet_topos.topology.plan import LabPlan

plans = st.builds(
    LabPlan,
    racks=st.integers(2, 32),
    hosts_per_rack=st.integers(1, 80),
    optical_ports_per_rack=st.integers(1, 2),
    splitters=st.dictionaries(st.integers(2, 64), st.integers(0, 4), max_size=3),
    light_rate_mbps=st.sampled_from([1.0, 10.0, 33.3, 100.0]),
    shared_datapath=st.booleans(),
)
small_plans = st.builds(
    LabPlan,
    racks=st.integers(2, 4),
    hosts_per_rack=st.integers(1, 4),
    optical_ports_per_rack=st.integers(1, 2),
    shared_datapath=st.booleans(),
)


@given(plans)
def test_port_numbers_and_addresses_are_unique(plan):
    ports = [
        (rack.datapath, port)
        for rack in plan.rack_plans
        for port in (*(h.port for h in rack.hosts), rack.uplink_port, *(p.port for p in rack.optical_ports))
    ]
    hosts = [host for rack in plan.rack_plans for host in rack.hosts]
    ocs = [p.ocs for rack in plan.rack_plans for p in rack.optical_ports]
    outputs = [output for splitter in plan.splitter_plans for output in splitter.outputs]
    for things in (ports, [h.name for h in hosts], [h.ip for h in hosts], [h.mac for h in hosts], ocs + outputs):
        assert max(Counter(things).values()) == 1
    assert sorted(ocs + outputs) == list(range(1, plan.ocs_ports + 1))
    assert all(splitter.input in splitter.outputs for splitter in plan.splitter_plans)


@given(plans)
def test_kernel_names_are_short_unique_and_identify_lab(plan):
    names = Names("bfff")
    ports = range(1, plan.ocs_ports + 1)
    root = [names.bridge(d) for d in plan.datapaths]
    inner = [names.core_bridge(), *map(names.ocs_port, ports), *map(names.splitter_side, ports)]
    for rack in plan.rack_plans:
        r = rack.number
        root += [names.uplink_at_tor(r), *(names.optical_at_tor(r, p.number) for p in rack.optical_ports)]
        root += [names.access_at_tor(r, h.number) for h in rack.hosts]
        inner += [names.uplink_at_core(r), *(names.access_at_host(r, h.number) for h in rack.hosts)]
    assert len({*root, *inner}) == len(root) + len(inner)
    assert max(map(len, root + inner)) <= 15
    assert {owner(name) for name in root + inner} == {"bfff"}


@given(plans)
def test_rendered_configuration_is_toml_and_matches_plan(plan):
    config = tomllib.loads(render(plan, Endpoints("a:1", "b:2", "c:3")))
    assert [rack["name"] for rack in config["rack"]] == [rack.name for rack in plan.rack_plans]
    assert {int(rack["datapath"], 16) for rack in config["rack"]} == set(plan.datapaths)
    assert config["fabric"]["optical_rate_gbps"] * 1000 == plan.light_rate_mbps
    assert [s["outputs"] for s in config.get("splitter", [])] == [list(s.outputs) for s in plan.splitter_plans]


def forward(rules, in_port, destination):
    """Return the output ports of the first matching rule by priority, without the input port."""
    is_multicast = int(destination[:2], 16) & 1
    best = (-1, [])
    for rule in rules:
        match, _, actions = rule.partition("actions=")
        fields = dict(field.split("=", 1) for field in match.rstrip(",").split(","))
        match_mac = fields["dl_dst"]
        hit = match_mac == destination or (match_mac.endswith("/01:00:00:00:00:00") and not is_multicast)
        if int(fields["in_port"]) == in_port and hit and int(fields["priority"]) > best[0]:
            best = (
                int(fields["priority"]),
                [int(action.removeprefix("output:")) for action in actions.split(",") if action],
            )
    return sorted(port for port in best[1] if port != in_port)


@given(small_plans)
def test_packet_rules_never_forward_to_optical_ports(plan):
    for racks in plan.datapaths.values():
        rules = forwarding_rules(racks)
        for rack in racks:
            hosts = {h.mac: h.port for h in rack.hosts}
            other_macs = [h.mac for other in plan.rack_plans if other is not rack for h in other.hosts]
            for port in hosts.values():
                for mac, home in hosts.items():
                    assert forward(rules, port, mac) == ([home] if home != port else [rack.uplink_port])
                for mac in (*other_macs, "02:00:00:00:00:99"):
                    assert forward(rules, port, mac) == [rack.uplink_port]
                assert forward(rules, port, "ff:ff:ff:ff:ff:ff") == sorted({*hosts.values(), rack.uplink_port} - {port})
                assert forward(rules, port, "01:00:5e:4d:00:01") == []
            for mac, home in hosts.items():
                assert forward(rules, rack.uplink_port, mac) == [home]
            for mac in other_macs:
                assert forward(rules, rack.uplink_port, mac) == []
            assert forward(rules, rack.uplink_port, "ff:ff:ff:ff:ff:ff") == sorted(hosts.values())
            for optical in rack.optical_ports:
                for mac in (*hosts, *other_macs, "ff:ff:ff:ff:ff:ff", "01:00:5e:4d:00:01"):
                    assert forward(rules, optical.port, mac) == []


@given(small_plans)
def test_packet_rules_have_cookie_of_packet_network(plan):
    for rule in forwarding_rules(plan.rack_plans):
        cookie = int(rule.partition(",")[0].removeprefix("cookie="), 16)
        assert cookie & COOKIE_MASK == COOKIE
        assert cookie >> 48 != 0xB1A5
