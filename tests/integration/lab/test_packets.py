"""The packet network of a lab: all hosts reach each other over the core, and no packet enters an optical fiber."""

import socket
from contextlib import suppress

import pytest

from mininet_topos.kernel.namespace import open_socket, run_in_network_of
from mininet_topos.kernel.netdev import query
from mininet_topos.topology.plan import LabPlan, preset
from tests.support.waiting import at_rest, look_until

pytestmark = pytest.mark.lab

ETH_P_ALL = 3
FLOODS = {
    "broadcast": "ffffffffffff",
    "unknown unicast": "020000000099",
    "unknown multicast": "01005e4d0001",
    "IPv6 multicast": "333300000001",
}


@pytest.fixture(scope="module")
def lab():
    from mininet_topos.lab.lab import Lab

    with Lab(LabPlan(racks=3, hosts_per_rack=2, optical_ports_per_rack=2), controller=None, agent=None) as lab:
        yield lab


def frames_until_silence(capture):
    """Return the received frames once none arrives for half a second."""
    frames = []
    with suppress(TimeoutError):
        while True:
            frames.append(capture.recv(65536))
    return frames


def flood(lab, host, destination, frames=10):
    """Send Ethernet frames from a host, bypassing its network stack."""
    node = lab.host(host)

    def send():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((node.defaultIntf().name, 0))
            for _ in range(frames):
                sender.send(bytes.fromhex(destination + "02b1a5000101" + "88b5") + bytes(100))

    run_in_network_of(node.pid, send)


def test_all_hosts_connect_and_no_packet_enters_optical_fibers(lab):
    with open_socket(lab.optical_switch.pid, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as capture:
        capture.settimeout(0.5)
        assert lab.net.pingAll(timeout="10") == 0
        assert lab.counters.core().sent_packets > 0
        for destination in FLOODS.values():
            flood(lab, "r1h1", destination)
        assert frames_until_silence(capture) == []
        # The same capture does see what is really put into a fiber.
        optical = lab.plan.rack_plans[0].optical_ports[0].port
        order = f"in_port=controller packet={'ff' * 6}{'02' * 6}0806{'00' * 46} actions=output:{optical}"
        query(["ovs-ofctl", "-O", "OpenFlow13", "packet-out", lab.names.bridge(1), order])
        assert len(frames_until_silence(capture)) == 1


def test_ungranted_multicast_and_light_reach_no_host(lab):
    others = [(1, 2), (2, 1), (2, 2)]

    def sent():
        return at_rest(lambda: {host: lab.counters.access(*host).sent_packets for host in others})

    before = sent()
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
    assert sent() == before
    flood(lab, "r1h1", FLOODS["broadcast"])
    reached = {host: count + 10 for host, count in before.items()}
    look_until(sent, lambda now: now == reached, "the broadcast at every host")


def test_racks_on_one_datapath_communicate_only_over_core(make_lab):
    lab = make_lab(preset("paper-testbed", hosts_per_rack=2))
    assert lab.net.pingAll(timeout="10") == 0
    query(["ip", "link", "set", lab.names.uplink_at_core(2), "down"], namespace_pid=lab.net["core"].pid)
    assert "1 received" in lab.host("r2h1").cmd("ping -c1 -W1 10.0.2.2")
    assert "0 received" in lab.host("r1h1").cmd("ping -c1 -W1 10.0.2.1")
    query(["ip", "link", "set", lab.names.uplink_at_core(2), "up"], namespace_pid=lab.net["core"].pid)
    assert "1 received" in lab.host("r1h1").cmd("ping -c1 -W2 10.0.2.1")
