"""The packet network of a lab: everybody reaches everybody by the core, and nothing of it gets into the fibres."""

import socket
import time

import pytest

from mininet_topos.namespace import open_socket, run_in_network_of
from mininet_topos.netdev import query
from mininet_topos.plan import LabPlan, preset
from tests.support.waiting import at_rest

pytestmark = pytest.mark.lab

ETH_P_ALL = 3
FLOODS = {
    "broadcast": "ffffffffffff",
    "unknown unicast": "020000000099",
    "unknown multicast": "01005e4d0001",
    "IPv6 multicast": "333300000001",
}


@pytest.fixture
def frames_in_fibres():
    """Starts a capture of all that arrives at an optical switch's ports; calling the result reads it."""
    opened = []

    def start(lab):
        capture = open_socket(lab.optical_switch.pid, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        capture.settimeout(0.5)
        opened.append(capture)
        return lambda: _drain(capture)

    yield start
    for capture in opened:
        capture.close()


def _drain(capture):
    frames = []
    while True:
        try:
            frames.append(capture.recv(65536))
        except TimeoutError:
            return frames


def flood(lab, host, destination, frames=10):
    """Send Ethernet frames from a host, whatever its own network stack would say."""
    node = lab.host(host)

    def send():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((node.defaultIntf().name, 0))
            for _ in range(frames):
                sender.send(bytes.fromhex(destination + "02b1a5000101" + "88b5") + bytes(100))

    run_in_network_of(node.pid, send)


def test_everybody_reaches_everybody_and_no_packet_gets_into_light(make_lab, frames_in_fibres):
    lab = make_lab(LabPlan(racks=3, hosts_per_rack=2, optical_ports_per_rack=2))
    read = frames_in_fibres(lab)
    assert lab.net.pingAll(timeout="10") == 0
    assert lab.counters.core().sent_packets > 0
    for destination in FLOODS.values():
        flood(lab, "r1h1", destination)
    assert read() == []
    # The same capture does see what is really put into a fibre.
    optical = lab.plan.rack_plans[0].optical_ports[0].port
    order = f"in_port=controller packet={'ff' * 6}{'02' * 6}0806{'00' * 46} actions=output:{optical}"
    query(["ovs-ofctl", "-O", "OpenFlow13", "packet-out", lab.names.bridge(1), order])
    assert len(read()) == 1


def test_unknown_multicast_and_light_without_a_grant_reach_no_host(make_lab):
    lab = make_lab(LabPlan(racks=2, hosts_per_rack=2))
    others = [(1, 2), (2, 1), (2, 2)]
    before = {host: lab.counters.access(*host).sent_packets for host in others}
    flood(lab, "r1h1", FLOODS["unknown multicast"])
    ocs_port = lab.names.ocs_port(lab.plan.rack_plans[1].optical_ports[0].ocs)

    def shine_into_rack_2():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((ocs_port, 0))
            for destination in (*FLOODS.values(), "02b1a5000201"):
                sender.send(bytes.fromhex(destination + "02b1a5000101" + "88b5") + bytes(100))

    received = lab.counters.optical(2).received_packets
    run_in_network_of(lab.optical_switch.pid, shine_into_rack_2)
    assert at_rest(lambda: lab.counters.optical(2).received_packets) - received == len(FLOODS) + 1
    assert {host: lab.counters.access(*host).sent_packets for host in others} == before
    flood(lab, "r1h1", FLOODS["broadcast"])
    sent = at_rest(lambda: {host: lab.counters.access(*host).sent_packets for host in others})
    assert {host: sent[host] - before[host] for host in others} == dict.fromkeys(others, 10)


def test_racks_on_one_datapath_talk_only_by_the_core(make_lab):
    lab = make_lab(preset("paper-testbed", hosts_per_rack=2))
    assert lab.net.pingAll(timeout="10") == 0
    query(["ip", "link", "set", lab.names.uplink_at_core(2), "down"], namespace_pid=lab.net["core"].pid)
    assert "1 received" in lab.host("r2h1").cmd("ping -c1 -W1 10.0.2.2")
    assert "0 received" in lab.host("r1h1").cmd("ping -c1 -W1 10.0.2.1")
    query(["ip", "link", "set", lab.names.uplink_at_core(2), "up"], namespace_pid=lab.net["core"].pid)
    assert "1 received" in lab.host("r1h1").cmd("ping -c1 -W2 10.0.2.1")


@pytest.mark.parametrize("oversubscription", [1, 4])
def test_rates_are_what_the_plan_says(make_lab, oversubscription):
    lab = make_lab(LabPlan(racks=2, hosts_per_rack=2, oversubscription=oversubscription))
    planned = min(lab.plan.access_rate_mbps, lab.plan.uplink_rate_mbps)
    # More than fits, by UDP: the rate is then the shaper's and not that of TCP on a busy machine.
    stream = lab.host("r1h1").popen(
        ["iperf", "-u", "-c", "10.0.2.1", "-l", "8900", "-b", f"{1.5 * planned}M", "-t", "5"]
    )
    time.sleep(1.0)  # the stream finds its rate
    seconds = [carried_mbps(lab, 1.0) for _ in range(3)]
    stream.communicate()
    # Never above the plan; below it in a second in which this machine had better things to do.
    assert planned / 2 < max(seconds) <= 1.05 * planned


def carried_mbps(lab, seconds):
    """The rate on the link to r2h1 for a while."""
    start, before = time.monotonic(), lab.counters.access(2, 1).sent_bytes
    time.sleep(seconds)  # what is measured is a rate
    return (lab.counters.access(2, 1).sent_bytes - before) * 8 / 1e6 / (time.monotonic() - start)


def test_hosts_are_ready_for_multicast(make_lab):
    lab = make_lab(LabPlan(racks=2, hosts_per_rack=1))
    host = lab.host("r1h1")
    interface = host.defaultIntf().name
    assert f"224.0.0.0/4 dev {interface}" in host.cmd("ip route")
    assert "tx-checksumming: off" in host.cmd(f"ethtool -k {interface}")
    assert host.cmd(f"cat /proc/sys/net/ipv4/conf/{interface}/rp_filter").strip() == "0"
    assert host.cmd("ip -6 addr").strip() == ""
    assert "mtu 9000" in host.cmd(f"ip link show {interface}")
