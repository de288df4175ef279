"""Unidirectional light in network namespaces: MTU 9000 by tc mirred, control over a bridge of MTU 1500."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.lab

SIZE = 2 << 20
RATE_MBPS = 40
PORT = 7000
GROUP = ["--group", "239.1.2.3", "--port", "5000", "--rate-mbps", str(RATE_MBPS)]


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass
class Plant:
    """A sender (host 0) and receivers (from 1 on), each with an interface `light` and one `packet`."""

    directory: Path
    receivers: int
    prefix: str = field(default_factory=lambda: f"bt{os.getpid()}-{secrets.token_hex(3)}")
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def host(self, number: int) -> str:
        return f"{self.prefix}-h{number}"

    @property
    def middle(self) -> str:
        return f"{self.prefix}-middle"

    def build(self) -> None:
        for name in (self.middle, *map(self.host, range(self.receivers + 1))):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", self.middle, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self.middle, "link", "set", "bridge", "up")
        for number in range(self.receivers + 1):
            self._wire(number, "light", 9000)
            self._wire(number, "packet", 1500)
            run("ip", "-n", self.middle, "link", "set", f"packet{number}", "master", "bridge")
            run("ip", "-n", self.host(number), "route", "add", "224.0.0.0/4", "dev", "light")
        self._split()

    def _wire(self, number: int, kind: str, mtu: int) -> None:
        host, end = self.host(number), f"{kind}{number}"
        address = f"10.{1 if kind == 'light' else 0}.0.{number + 1}/24"
        run("ip", "link", "add", kind, "netns", host, "type", "veth", "peer", "name", end, "netns", self.middle)
        for namespace, device in ((host, kind), (self.middle, end)):
            run("ip", "-n", namespace, "link", "set", device, "mtu", str(mtu), "up")
        run("ip", "-n", host, "address", "add", address, "dev", kind)

    def _split(self) -> None:
        outputs: list[str] = []
        for number in range(1, self.receivers + 1):
            outputs += ["action", "mirred", "egress", "mirror", "dev", f"light{number}"]
        run("tc", "-n", self.middle, "qdisc", "add", "dev", "light0", "ingress")
        every = ["protocol", "all", "u32", "match", "u32", "0", "0"]
        run("tc", "-n", self.middle, "filter", "add", "dev", "light0", "ingress", *every, *outputs)

    def lose(self, number: int, value: int, mask: int) -> None:
        """Lose the datagrams whose segment number, masked, has this value: its low byte is at 20 + 8 + 8.

        They are redirected into the fiber, where no host listens: not every kernel has the drop action.
        """
        host = self.host(number)
        run("tc", "-n", host, "qdisc", "add", "dev", "light", "ingress")
        match = ["match", "ip", "protocol", "17", "0xff", "match", "u8", hex(value), hex(mask), "at", "36"]
        action = ["action", "mirred", "egress", "redirect", "dev", "light"]
        run("tc", "-n", host, "filter", "add", "dev", "light", "ingress", "protocol", "ip", "u32", *match, *action)

    @property
    def secret(self) -> Path:
        return self.directory / "secret"

    def start_receivers(self) -> None:
        self.secret.touch(mode=0o600)
        self.secret.write_text(secrets.token_hex(32))
        for number in range(1, self.receivers + 1):
            target = self.directory / str(number)
            target.mkdir()
            command = ["ip", "netns", "exec", self.host(number), sys.executable, "-m", "blast_transport", "receive"]
            command += ["--listen", f"10.0.0.{number + 1}:{PORT}", "--interface-address", f"10.1.0.{number + 1}"]
            # All hosts share one disk, which would limit the rate.
            command += ["--directory", str(target), "--secret-file", str(self.secret), "--no-fsync"]
            self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        for process in self.processes:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["event"] == "listening"

    def send(self, file: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
        to = ",".join(f"h{number}=10.0.0.{number + 1}:{PORT}" for number in range(1, self.receivers + 1))
        command = ["ip", "netns", "exec", self.host(0), sys.executable, "-m", "blast_transport", "send", str(file)]
        done = subprocess.run(
            [*command, "--to", to, "--interface-address", "10.1.0.1", "--secret-file", str(self.secret), *options],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def transmitted(self, device: str) -> int:
        statistics = json.loads(run("ip", "-n", self.host(0), "-s", "-j", "link", "show", device))
        return int(statistics[0]["stats64"]["tx"]["bytes"])

    def remove(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        for name in (self.middle, *map(self.host, range(self.receivers + 1))):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@pytest.fixture(scope="module")
def whole_plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    plant = Plant(tmp_path_factory.mktemp("plant"), 3)
    try:
        plant.build()
        plant.start_receivers()
        yield plant
    finally:
        plant.remove()


@pytest.fixture
def plant(whole_plant: Plant) -> Iterator[Plant]:
    """Yield the shared plant; end its packet loss after each test."""
    yield whole_plant
    for number in range(1, whole_plant.receivers + 1):
        deleted = ["tc", "-n", whole_plant.host(number), "qdisc", "del", "dev", "light", "ingress"]
        subprocess.run(deleted, check=False, capture_output=True)


def copies_equal(plant: Plant, file: Path, receivers: list[int]) -> bool:
    content = file.read_bytes()
    return all((plant.directory / str(number) / file.name).read_bytes() == content for number in receivers)


def test_sender_transmits_one_optical_copy(plant: Plant, file: Path) -> None:
    light, packet = plant.transmitted("light"), plant.transmitted("packet")
    status, _ = plant.send(file, *GROUP)
    assert status == 0
    assert copies_equal(plant, file, [1, 2, 3])
    assert SIZE <= plant.transmitted("light") - light < 2 * SIZE
    assert plant.transmitted("packet") - packet < SIZE


@pytest.mark.parametrize("second", [(0xA8, 0xFF), (3, 0x1F)], ids=["other segments", "the same segments"])
def test_losses_of_two_branches_are_repaired(plant: Plant, file: Path, second: tuple[int, int]) -> None:
    """Repairs use packets for each, or the optical transport for both; repeated losses use packets in the end."""
    plant.lose(1, 3, 0x1F)
    plant.lose(2, *second)
    status, (result,) = plant.send(file, *GROUP)
    assert status == 0
    assert copies_equal(plant, file, [1, 2, 3])
    if second == (3, 0x1F):
        assert result["shared_repairs"] > 0
    else:
        assert min(one["repaired_bytes"] for one in result["receivers"][:2]) > 0


def test_branch_without_light_gets_file_over_packet_network(plant: Plant, file: Path) -> None:
    plant.lose(2, 0, 0)
    status, (result,) = plant.send(file, *GROUP)
    assert status == 0
    assert result["receivers"][1]["repaired_bytes"] == SIZE and result["receivers"][1]["demoted"]
    assert copies_equal(plant, file, [1, 2, 3])


@pytest.mark.parametrize(("transport", "copies"), [("unicast", 3), ("pipeline", 1)])
def test_other_transports_send_nothing_optically(plant: Plant, file: Path, transport: str, copies: int) -> None:
    """At least a copy for each leaves the sender, or one for all of them."""
    light, packet = plant.transmitted("light"), plant.transmitted("packet")
    status, _ = plant.send(file, "--transport", transport)
    assert status == 0
    assert copies_equal(plant, file, [1, 2, 3])
    assert plant.transmitted("light") - light < 1000
    # A chain that breaks on a busy machine is made up for by more.
    assert plant.transmitted("packet") - packet >= copies * SIZE


def test_sealed_optical_traffic_reveals_no_content(plant: Plant, file: Path, tmp_path: Path) -> None:
    """A host that is lit by mistake receives only ciphertext."""
    file.write_bytes(b"every line of this file is secret\n" * 30_000)
    listener = subprocess.Popen(
        ["ip", "netns", "exec", plant.host(1), sys.executable, "-c", LISTENER, "10.1.0.2"], stdout=subprocess.PIPE
    )
    assert listener.stdout is not None
    assert listener.stdout.readline() == b"listening\n"
    status, _ = plant.send(file, *GROUP, "--sealed")
    captured, _ = listener.communicate(timeout=30)
    assert status == 0 and copies_equal(plant, file, [1, 2, 3])
    assert len(captured) > 200_000
    assert b"secret" not in captured


LISTENER = """
import socket, sys
from blast_transport.datagrams.interface import open_group_socket
sock = open_group_socket(sys.argv[1], "239.1.2.3", 5000)
sock.settimeout(30)
sys.stdout.write("listening\\n")
sys.stdout.flush()
for _ in range(30):
    sys.stdout.buffer.write(sock.recv(65536))
"""
