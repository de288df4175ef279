"""Hosts on switches where multicast does not reach every receiver, or another sender uses the group."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.transport.bridged_hosts import Hosts, OpenVSwitch, SnoopingBridge, ip, run
from tests.support.waiting import eventually

pytestmark = [pytest.mark.lab, pytest.mark.test_all]

SIZE = 2 << 20
LARGE = 16 << 20
"""From this size on "auto" multicasts."""
AUTO, MULTICAST = ("--via", "auto", "--controller", ""), ("--via", "multicast")
ANOTHER_SENDER = """
import select, socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[1]))
sock.sendto(b"another sender", (sys.argv[2], 9096))
sys.stdout.write("sending\\n")
sys.stdout.flush()
while not select.select([sys.stdin], [], [], 0.0005)[0]:
    sock.sendto(b"another sender", (sys.argv[2], 9096))
"""
"""Sends to a group until its standard input is closed."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path_factory.mktemp("hosts"), receivers=3)
    with ExitStack() as undo:
        hosts.build(undo)
        hosts.start_agents(undo)
        yield hosts


@pytest.fixture(scope="module", params=[SnoopingBridge, OpenVSwitch], ids=["bridge", "Open vSwitch"])
def snooped_hosts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path_factory.mktemp("hosts"), switch=request.param())
    with ExitStack() as undo:
        hosts.build(undo)
        hosts.start_agents(undo)
        yield hosts


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / f"f{secrets.token_hex(4)}"
    path.write_bytes(os.urandom(SIZE))
    return path


@pytest.fixture
def large_file(file: Path) -> Path:
    with file.open("ab") as end:
        end.write(os.urandom(LARGE - SIZE))
    return file


@contextmanager
def cut_off(hosts: Hosts, *numbers: int) -> Iterator[None]:
    """Drop UDP at these hosts, as a firewall does: it is redirected to an interface that nothing uses."""
    for number in numbers:
        name = hosts.name(number)
        ip("-n", name, "link", "add", "unused", "up", "type", "veth", "peer", "name", "unused-end")
        run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "ingress")
        match = ["u32", "match", "ip", "protocol", "17", "0xff", "action", "mirred", "egress", "redirect"]
        run("tc", "-n", name, "filter", "add", "dev", "eth0", "ingress", "protocol", "ip", *match, "dev", "unused")
    try:
        yield
    finally:
        for number in numbers:
            run("tc", "-n", hosts.name(number), "qdisc", "delete", "dev", "eth0", "ingress")
            ip("-n", hosts.name(number), "link", "delete", "unused")


@contextmanager
def without_ipv4(hosts: Hosts) -> Iterator[None]:
    for number in hosts.numbers:
        ip("-n", hosts.name(number), "-4", "address", "flush", "dev", "eth0")
    try:
        yield
    finally:
        for number in hosts.numbers:
            hosts.add_ipv4(number)


@contextmanager
def small_packets(hosts: Hosts, *numbers: int) -> Iterator[None]:
    """Let these hosts accept packets of 1,500 bytes only."""
    # A veth passes a super-packet, whatever its MTU is.
    ip("-n", hosts.name(0), "link", "set", "eth0", "gso_max_size", "8000")
    for number in numbers:
        ip("-n", hosts.name(number), "link", "set", "eth0", "mtu", "1500")
    try:
        yield
    finally:
        for number in numbers:
            ip("-n", hosts.name(number), "link", "set", "eth0", "mtu", "9000")
        ip("-n", hosts.name(0), "link", "set", "eth0", "gso_max_size", "65536")


def test_receiver_that_no_datagram_reaches_gets_file_from_a_receiver(hosts: Hosts, large_file: Path) -> None:
    with cut_off(hosts, 2):
        before = hosts.transmitted(0)
        result = hosts.send(large_file, "4", *AUTO)
    assert result["transports"] == ["multicast", "pipeline"]
    assert all(hosts.has(number, large_file) for number in (1, 2, 3))
    assert hosts.transmitted(0) - before < 1.3 * LARGE
    demoted = {one["name"]: one["demoted"] for one in result["receivers"]}
    assert "no datagram of the group 239.255." in demoted["h2"] and not (demoted["h1"] or demoted["h3"])
    assert sum(one["repaired_bytes"] for one in result["receivers"]) < SIZE / 10


def test_pipeline_replaces_multicast_that_reaches_no_receiver(hosts: Hosts, file: Path) -> None:
    with cut_off(hosts, 1, 2, 3):
        result = hosts.send(file, "4", *MULTICAST)
    assert result["transports"] == ["multicast", "pipeline"]
    assert all(hosts.has(number, file) for number in (1, 2, 3))
    (note,) = result["notes"]
    assert "no receiver got a datagram" in note and "IGMP" in note


def test_group_of_another_host_is_not_used(hosts: Hosts, file: Path) -> None:
    command = ["ip", "netns", "exec", hosts.name(3), sys.executable, "-c", ANOTHER_SENDER]
    command += [hosts.address(3, "4"), "239.255.7.7"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "sending\n"
        result = hosts.send(file, "4", *MULTICAST, "--groups", "239.255.7.7")
        other.communicate()
    assert result["transports"][-1] == "pipeline"
    assert f"{hosts.address(3, '4')} sends to the group 239.255.7.7 (UDP port 9096) too" in result["notes"][0]
    assert all(hosts.has(number, file) for number in (1, 2, 3))


@pytest.mark.parametrize("version", ["4", "6"])
def test_pipeline_replaces_multicast_after_a_switch_forgot_the_memberships(
    snooped_hosts: Hosts, large_file: Path, version: str
) -> None:
    before = snooped_hosts.transmitted(0)
    with snooped_hosts.sending(large_file, version, *MULTICAST, "--max-rate", "16Mbit/s") as process:
        eventually(lambda: snooped_hosts.transmitted(0) > before + SIZE // 8, "the switch forwards data")
        snooped_hosts.switch.forget()
        result = snooped_hosts.result(process)
    assert result["transports"] == ["multicast", "pipeline"]
    assert all(snooped_hosts.has(number, large_file, version) for number in (1, 2))
    (note,) = result["notes"]
    assert "no longer reach any receiver" in note and "IGMP or MLD querier" in note


@pytest.mark.parametrize("snooped_hosts", [OpenVSwitch], indirect=True, ids=["Open vSwitch"])
def test_hosts_without_ipv4_get_file_by_multicast(snooped_hosts: Hosts, large_file: Path) -> None:
    with without_ipv4(snooped_hosts):
        result = snooped_hosts.send(large_file, "6", *AUTO)
    assert result["transports"] == ["multicast"] and result["notes"] == []
    assert all(snooped_hosts.has(number, large_file, "6") for number in (1, 2))


def test_receiver_whose_path_carries_smaller_packets_gets_file_from_a_receiver(hosts: Hosts, file: Path) -> None:
    with small_packets(hosts, 2):
        result = hosts.send(file, "4", *MULTICAST)
    assert result["transports"] == ["multicast", "pipeline"]
    demoted = {one["name"]: one["demoted"] for one in result["receivers"]}
    assert "packets of 9000 bytes" in demoted["h2"] and not (demoted["h1"] or demoted["h3"])
    assert all(hosts.has(number, file) for number in (1, 2, 3))
