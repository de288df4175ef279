"""The transport `multicast` between hosts on a bridge: IP versions, one source or any, MTUs, interfaces."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.transport.bridged_hosts import Hosts, ip

pytestmark = [pytest.mark.lab, pytest.mark.test_all]

SIZE = 2 << 20
GROUPS = {"4": ("239.255.0.0/16", "232.9.0.0/16"), "6": ("ff15::b1a5:0:0/96", "ff35::8000:0/97")}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path_factory.mktemp("hosts"))
    with ExitStack() as undo:
        hosts.build(undo)
        hosts.start_agents(undo)
        yield hosts


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / f"f{secrets.token_hex(4)}"
    path.write_bytes(os.urandom(SIZE))
    return path


@contextmanager
def another_interface(hosts: Hosts) -> Iterator[None]:
    """Give each host an interface without a network, to which the kernel routes groups."""
    for number in hosts.numbers:
        on = ["-n", hosts.name(number)]
        ip(*on, "link", "add", "eth1", "up", "type", "veth", "peer", "name", "eth1-end")
        ip(*on, "link", "set", "eth1-end", "up")
        ip(*on, "address", "add", f"10.7.0.{number + 1}/24", "dev", "eth1")
        ip(*on, "route", "add", "224.0.0.0/4", "dev", "eth1")
        ip(*on, "route", "add", "multicast", "ff15::/16", "dev", "eth1", "table", "local")
    try:
        yield
    finally:
        for number in hosts.numbers:
            ip("-n", hosts.name(number), "link", "delete", "eth1")


@pytest.mark.parametrize("version", GROUPS)
@pytest.mark.parametrize("source_specific", [False, True], ids=["any source", "one source"])
@pytest.mark.parametrize("mtu", [1280, 9000])
@pytest.mark.parametrize("options", [(), ("--sealed", "--hops", "3", "--dscp", "10")], ids=["plain", "sealed"])
def test_file_arrives_once_by_multicast(
    hosts: Hosts, file: Path, version: str, source_specific: bool, mtu: int, options: tuple[str, ...]
) -> None:
    ip("-n", hosts.name(0), "link", "set", "eth0", "mtu", str(mtu))
    result = hosts.send(file, version, "--via", "multicast", "--groups", GROUPS[version][source_specific], *options)
    assert result["transports"] == ["multicast"] and result["notes"] == []
    headers = 28 if version == "4" else 48
    segments = -(-SIZE // (mtu - headers - 16))
    assert segments <= result["datagrams"] < 1.1 * segments + 50
    assert all(hosts.has(number, file, version) for number in (1, 2))


@pytest.mark.parametrize("version", GROUPS)
def test_interface_on_the_route_to_the_receivers_multicasts(hosts: Hosts, file: Path, version: str) -> None:
    with another_interface(hosts):
        result = hosts.send(file, version, "--via", "multicast")
    assert result["transports"] == ["multicast"] and result["notes"] == []
    assert all(hosts.has(number, file, version) for number in (1, 2))


@pytest.mark.parametrize(
    ("state", "failure"),
    [("up", "check that the interface of 10.7.0.1 leads to the receivers"), ("down", "by 10.7.0.1: Network is unreac")],
)
def test_note_names_an_interface_that_does_not_reach_receivers(
    hosts: Hosts, file: Path, state: str, failure: str
) -> None:
    with another_interface(hosts):
        ip("-n", hosts.name(0), "link", "set", "eth1", state)
        result = hosts.send(file, "4", "--via", "multicast", "--multicast-address", "10.7.0.1")
    assert result["transports"][-1] == "pipeline"
    assert failure in result["notes"][0]
    assert all(hosts.has(number, file) for number in (1, 2))
