"""Sources of capacities (files, a monitor, the controller, agents), and their table."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from blast_api.ttypes import FabricStatus, RackStatus
from blast_client.api.base_error import InvalidArgumentError
from blast_client.capacities import by_file
from blast_client.capacities.by_agents import AgentCapacities, MeasurementError, MeasurementStep
from blast_client.capacities.by_controller import ControllerCapacities, UnknownRateError
from blast_client.capacities.by_file import FileCapacities
from blast_client.capacities.by_monitor import MonitorCapacities, MonitorError
from blast_client.capacities.capacities import Capacities, InvalidNetworkFileError, read_capacities
from blast_client.capacities.table import capacities_table
from blast_controller.configuration.reading import parse
from blast_controller.core.controller import Core
from blast_controller.rpc.fabric_reading import FabricReading
from blast_sim.trees.network_file import parse_network
from blast_transport.links.dialling import dial
from blast_transport.measuring.flows import FlowSize
from tests.blast_controller.configuration.test_config import GOOD
from tests.support.interrupted import members
from tests.support.transport.measured_hosts import Host, host
from tests.support.waiting import eventually

TWO = {
    "hosts": ["a", "b", "c"],
    "root": "a",
    "receivers": "all",
    "links": [["a", "b", 1e9], ["b", "c", 2]],
    "in": {"c": 5},
}
SMALL = FlowSize(1 << 18, 1.0)


def written(value: object) -> bytes:
    return json.dumps(value).encode()


# -------------------------------------------------------------------------------------------------------- the file


def test_network_file_round_trips_and_feeds_tree_planner():
    found = read_capacities(written(TWO))
    assert found == Capacities(("a", "b", "c"), "a", ("b", "c"), {("a", "b"): 1e9, ("b", "c"): 2.0}, {}, {"c": 5.0})
    assert read_capacities(written(found.to_json())) == found
    assert parse_network(written(found.to_json())).rates[0, 1] == 1e9


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"root": "x"}, "'x' is not among the hosts"),
        ({"receivers": ["a"]}, "the root is among the receivers"),
        ({"links": [["a", "b", 1]]}, "no data of 'a' can reach c"),
        ({"links": [["a", "a", 1]]}, "from 'a' to itself"),
        ({"links": [["a", "b", -1]]}, "the rate of link number 1 must be 0, or from"),
        ({"links": [["a", "b", 1e400]]}, "Infinity is not a finite number"),
        ({"links": [["a", "b", 1], ["a", "b", 2]]}, "occurs twice"),
        ({"speed": 1}, "unknown key 'speed'"),
        ({"hosts": ["a", "b", "c", "b"]}, "occurs twice"),
        ({"out": {"x": 1}}, "'x' is not among the hosts"),
        ({"out": 3}, "out must be a table"),
    ],
)
def test_reader_rejects_invalid_network_file_with_reason(changes, sentence):
    with pytest.raises(InvalidNetworkFileError, match=sentence):
        read_capacities(written({**TWO, **changes}))


def test_file_source_rejects_other_root_unknown_host_or_missing_file(tmp_path):
    path = tmp_path / "network.json"
    path.write_bytes(written(TWO))
    source = FileCapacities(path)
    assert source.capacities("a", ["c"]).root == "a"
    for root, receivers, sentence in (("b", ["c"], "root of the network is 'a'"), ("a", ["d"], "no host 'd'")):
        with pytest.raises(InvalidNetworkFileError, match=sentence):
            source.capacities(root, receivers)
    with pytest.raises(InvalidNetworkFileError, match=r"cannot read .*: No such file"):
        FileCapacities(tmp_path / "absent").capacities("a", ["b"])


def test_file_source_stops_reading_at_size_limit(monkeypatch):
    monkeypatch.setattr(by_file, "MAX_BYTES", 100_000)
    with pytest.raises(InvalidNetworkFileError, match="/dev/zero: the file is larger than 100000 bytes"):
        FileCapacities(Path("/dev/zero")).capacities("a", ["b"])


# ----------------------------------------------------------------------------------------------------- the monitor


def monitor(program: str, *arguments: object, **limits: float) -> MonitorCapacities:
    return MonitorCapacities(shlex.join([sys.executable, "-c", program, *map(str, arguments)]), **limits)  # type: ignore[arg-type]


def test_monitor_receives_hosts_and_returns_network():
    program = (
        "import json, sys; asked = json.load(sys.stdin); asked['hosts'] = [asked['root'], *asked['receivers']]; "
        "asked['links'] = [[asked['root'], one, 7] for one in asked['receivers']]; print(json.dumps(asked))"
    )
    found = monitor(program).capacities("a", ["b", "é"])
    assert found.links == {("a", "b"): 7.0, ("a", "é"): 7.0}


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("raise SystemExit(3)", "failed with exit status 3"),
        ("print('hello')", "invalid JSON"),
        (f"print({json.dumps({**TWO, 'root': 'b', 'receivers': ['c']})!r})", "root of the network is 'b'"),
    ],
)
def test_invalid_answer_of_monitor_raises_monitor_error(program, sentence):
    with pytest.raises(MonitorError, match=sentence):
        monitor(program).capacities("a", ["b"])


def test_monitor_with_unbounded_output_is_stopped():
    with pytest.raises(MonitorError, match="writes more than 100000 bytes"):
        monitor("while True: print('x' * 10_000)", max_bytes=100_000).capacities("a", ["b"])


@pytest.mark.parametrize("more", ["", "sys.stdout.close(); os.close(1); "])
def test_slow_monitor_is_stopped_with_its_children(tmp_path, more):
    mark = tmp_path / "group"
    program = (
        "import os, subprocess, sys, time; subprocess.Popen(['sleep', '600']); "
        f"open(sys.argv[1], 'w').write(str(os.getpgrp())); {more}time.sleep(600)"
    )
    with pytest.raises(MonitorError, match="did not answer within 1 s"):
        monitor(program, mark, seconds=1.0).capacities("a", ["b"])
    # On a machine that is too busy to start it within that second there is nothing to look for.
    if mark.exists() and mark.read_text():
        eventually(lambda: not members(int(mark.read_text())), "the monitor and its child to end")


@pytest.mark.parametrize("program", ["import sys; asked = len(sys.stdin.read())", "asked = 0"])
def test_monitor_may_ignore_input_larger_than_a_pipe(program):
    answer = json.dumps({**TWO, "hosts": ["a", "b", "c"]})
    receivers = [f"{number:0100}" for number in range(5000)]
    with pytest.raises(MonitorError, match=f"is not valid: the network has no host '{receivers[0]}'"):
        monitor(f"{program}; print({answer!r})").capacities("a", receivers)


@pytest.mark.parametrize("command", ["", "'", "/no/such/program", "/etc/passwd"])
def test_monitor_with_invalid_command_raises_error(command):
    with pytest.raises((InvalidArgumentError, MonitorError)):
        MonitorCapacities(command).capacities("a", ["b"])


# -------------------------------------------------------------------------------------------------- the controller


class Asked:
    """A controller with these racks."""

    def __init__(self, *racks: RackStatus) -> None:
        self.racks = racks

    def fabric(self) -> FabricStatus:
        return FabricStatus(list(self.racks), [], [], [], 10**10, 0)


def rack(name: str, hosts: dict[str, int], uplink: int | None = None) -> RackStatus:
    rates = {host: rate for host, rate in hosts.items() if rate}
    return RackStatus(name, "1", True, [], list(hosts), rates or None, uplink)


def test_controller_source_derives_links_from_access_and_uplink_rates():
    asked = Asked(rack("r1", {"a": 10, "b": 4}, 8), rack("r2", {"c": 10}, 6), rack("r3", {"d": 7}))
    found = ControllerCapacities(asked).capacities("a", ["b", "c", "d"])
    assert (found.out, found.into) == ({"a": 10, "b": 4, "c": 10, "d": 7}, {"b": 4, "c": 10, "d": 7})
    expected = {"ab": 4, "ac": 6, "ad": 7, "bc": 4, "bd": 4, "cb": 4, "cd": 6, "db": 4, "dc": 6}
    assert found.links == {(link[0], link[1]): rate for link, rate in expected.items()}
    assert read_capacities(written(found.to_json())) == found


def test_fabric_status_reports_configured_rates():
    text = GOOD.replace('ip = "10.0.0.1" }]', 'ip = "10.0.0.1", access_rate_gbps = 2.5 }]\nuplink_rate_gbps = 40')
    config = parse(text)
    racks = FabricReading().read(Core(config.build_fabric(), config.core_settings()).snapshot, None).racks
    assert [(one.accessBitsPerSecond, one.uplinkBitsPerSecond) for one in racks[:2]] == [
        ({"h1": 2_500_000_000}, 40_000_000_000),
        (None, None),
    ]


def test_controller_source_rejects_unknown_host_or_rate():
    asked = Asked(rack("r1", {"a": 10, "b": 0}))
    with pytest.raises(UnknownRateError, match="knows no host 'x'"):
        ControllerCapacities(asked).capacities("a", ["x"])
    with pytest.raises(UnknownRateError, match="does not know the rate of b's access link: write `access_rate_gbps`"):
        ControllerCapacities(asked).capacities("a", ["b"])


# ---------------------------------------------------------------------------------------------------------- agents


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    with ExitStack() as stack:
        yield [stack.enter_context(host(f"h{number}")) for number in range(3)]


def test_agents_measure_all_links_except_those_into_root(hosts):
    steps: list[MeasurementStep] = []
    agents = [one.address for one in hosts]
    source = AgentCapacities(agents, dial, SMALL, steps.append)
    found = source.capacities("here", ["h0", "h1", "h2"])
    names = ("here", "h0", "h1", "h2")
    assert found.links.keys() == {(one, other) for one in names for other in names[1:] if one != other}
    assert min(found.links.values()) > 0 and found.receivers == names[1:]
    assert found.out.keys() == set(names) and found.into.keys() == set(names[1:])
    for name in names:
        assert found.out[name] >= max(rate for (start, _), rate in found.links.items() if start == name)
    for name in names[1:]:
        assert found.into[name] >= max(rate for (_, end), rate in found.links.items() if end == name)
    assert [step.done for step in steps] == list(range(1, steps[-1].total + 1))
    assert read_capacities(written(found.to_json())) == found


def test_single_receiver_has_no_outgoing_capacity(hosts):
    found = AgentCapacities([hosts[0].address], dial, SMALL).capacities("here", ["h0"])
    assert found.out.keys() == {"here"} and found.into.keys() == {"h0"}


def test_unreachable_host_has_dead_links_and_no_capacity(hosts):
    agents = [*(one.address for one in hosts), ("gone", "127.0.0.1", 1)]
    found = AgentCapacities(agents, dial, FlowSize(1 << 18, 1.0, 2)).measure("here", ["h0", "gone", "h1"])
    assert found.away.keys() == {"gone"} and "Connection refused" in found.away["gone"]
    assert found.dead.keys() == {link for link in found.capacities.links if "gone" in link}
    assert {rate for link, rate in found.capacities.links.items() if "gone" in link} == {0.0}
    assert found.capacities.receivers == ("h0", "h1") and found.capacities.out["gone"] == 0
    assert parse_network(written(found.capacities.to_json())).hosts == ("here", "h0", "gone", "h1")


def test_agent_source_rejects_unreachable_missing_or_too_many_hosts():
    with pytest.raises(MeasurementError, match="no data reaches any host from here: cannot connect to"):
        AgentCapacities([("gone", "127.0.0.1", 1)], dial, SMALL).measure("here", ["gone"])
    with pytest.raises(InvalidArgumentError, match="the address of the agent of 'b' is missing"):
        AgentCapacities([("a", "127.0.0.1", 1)], dial, SMALL).capacities("here", ["a", "b"])
    with pytest.raises(InvalidArgumentError, match="201 hosts: name at most"):
        AgentCapacities([], dial, SMALL).capacities("here", [f"h{number}" for number in range(200)])


# ----------------------------------------------------------------------------------------------------------- shown


def test_capacities_table_shows_rates_dead_links_and_limits():
    found = Capacities(
        ("a", "b", "c"), "a", ("b",), {("a", "b"): 9.5e6, ("a", "c"): 0.0, ("b", "c"): 1e9}, {"a": 2e7}, {"b": 1.5e9}
    )
    lines = capacities_table(found).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["from \\ to", "a (root)", "b", "c", "takes in all"]
    assert lines[1].split() == ["a", "(root)", "-", "9.5", "Mbit/s", "dead", "20", "Mbit/s"]
    assert lines[2].split() == ["b", "-", "-", "1", "Gbit/s", "no", "limit"]
    assert lines[4].split() == ["takes", "in", "all", "-", "1.5", "Gbit/s", "no", "limit"]
