"""A sender and receivers in network namespaces on one switch, with agents for IPv4 and IPv6."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

from tests.support.transport.transport_hosts import BLAST
from tests.support.waiting import eventually

PORT = 9095


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def ip(*words: str) -> None:
    run("ip", *words)


class FloodingBridge:
    """A kernel bridge that floods multicast."""

    def __init__(self) -> None:
        self.name = f"bm{os.getpid()}-{secrets.token_hex(3)}"

    def build(self, undo: ExitStack) -> None:
        ip("netns", "add", self.name)
        undo.callback(ip, "netns", "delete", self.name)
        ip("-n", self.name, "link", "add", "bridge", "type", "bridge", "mcast_snooping", "0")
        ip("-n", self.name, "link", "set", "bridge", "mtu", "9000", "up")

    def connect(self, host: str, number: int) -> None:
        """Give this host an interface `eth0`."""
        end = ["peer", "name", f"port{number}", "netns", self.name]
        ip("link", "add", "eth0", "address", mac(number), "netns", host, "type", "veth", *end)
        ip("-n", self.name, "link", "set", f"port{number}", "mtu", "9000", "master", "bridge", "up")

    def forget(self) -> None:
        """Forget the memberships, if the switch does not by itself."""


class SnoopingBridge(FloodingBridge):
    """A kernel bridge that forgets a membership after two seconds, because no querier lets the host report it again.

    It floods unless it knows a querier, therefore it is one itself, which queries once, before any host has joined.
    """

    def build(self, undo: ExitStack) -> None:
        super().build(undo)
        # Without an address, the bridge is no querier for IPv6.
        ip("-n", self.name, "address", "add", "fe80::1/64", "dev", "bridge", "nodad")
        bridge = ["-n", self.name, "link", "set", "bridge", "type", "bridge"]
        ip(*bridge, *options_of(snooping=1, igmp_version=3, mld_version=2, membership_interval=200))
        ip(*bridge, *options_of(startup_query_count=1, query_interval=360000, query_response_interval=100))
        # A querier floods at first, for the interval of responses, which it must know by now.
        ip(*bridge, *options_of(querier=1))


class OpenVSwitch(FloodingBridge):
    """An Open vSwitch that drops datagrams to groups without members; `forget` spares the least aging time, 15 s."""

    def __init__(self) -> None:
        self.name = f"bm{secrets.token_hex(4)}"

    def build(self, undo: ExitStack) -> None:
        undo.callback(run, "ovs-vsctl", "--timeout=10", "--if-exists", "del-br", self.name)
        options = ["datapath_type=netdev", "mcast_snooping_enable=true"]
        options.append("other_config:mcast-snooping-disable-flood-unregistered=true")
        run("ovs-vsctl", "--timeout=10", "add-br", self.name, "--", "set", "bridge", self.name, *options)

    def connect(self, host: str, number: int) -> None:
        end = f"{self.name}-{number}"
        ip("link", "add", "eth0", "address", mac(number), "netns", host, "type", "veth", "peer", "name", end)
        # This end is in the namespace of the machine, which must not take part in IPv6 there.
        ip("link", "set", end, "addrgenmode", "none", "mtu", "9000", "up")
        # The user-space datapath drops packets whose checksum the sender left to the hardware.
        run("ip", "netns", "exec", host, "ethtool", "-K", "eth0", "tx", "off")
        run("ovs-vsctl", "--timeout=10", "add-port", self.name, end)

    def forget(self) -> None:
        run("ovs-appctl", "mdb/flush", self.name)


def options_of(**values: int) -> list[str]:
    """Return the words of these options of multicast; times are in hundredths of a second."""
    return [word for name, value in values.items() for word in (f"mcast_{name}", str(value))]


def mac(number: int) -> str:
    return f"02:00:00:00:00:{number + 1:02x}"


@dataclass
class Hosts:
    """A sender (0) and receivers (1 and up), each in a namespace, on a switch."""

    directory: Path
    receivers: int = 2
    switch: FloodingBridge = field(default_factory=FloodingBridge)
    prefix: str = field(default_factory=lambda: f"bm{os.getpid()}-{secrets.token_hex(3)}")

    def name(self, number: int) -> str:
        return f"{self.prefix}-{number}"

    def address(self, number: int, version: str) -> str:
        return f"10.6.0.{number + 1}" if version == "4" else f"2001:db8::{number + 1}"

    @property
    def secret(self) -> Path:
        return self.directory / "secret"

    @property
    def numbers(self) -> range:
        return range(self.receivers + 1)

    def build(self, undo: ExitStack) -> None:
        self.switch.build(undo)
        for number in self.numbers:
            name = self.name(number)
            ip("netns", "add", name)
            undo.callback(ip, "netns", "delete", name)
            ip("-n", name, "link", "set", "lo", "up")
            self.switch.connect(name, number)
            # A report that is repeated later would restore a membership that the switch has forgotten.
            for interval in ("ipv4/conf/eth0/igmpv3", "ipv6/conf/eth0/mldv2"):
                file = f"/proc/sys/net/{interval}_unsolicited_report_interval"
                run("ip", "netns", "exec", name, "sh", "-c", f"echo 10 >{file}")
            ip("-n", name, "link", "set", "eth0", "mtu", "9000", "up")
            self.add_ipv4(number)
            ip("-n", name, "address", "add", f"{self.address(number, '6')}/64", "dev", "eth0", "nodad")
        for number, other in permutations(self.numbers, 2):
            # A switch that forgets groups forgets those of neighbor discovery, too, which cuts off IPv6.
            entry = [self.address(other, "6"), "lladdr", mac(other)]
            ip("-n", self.name(number), "neighbor", "add", *entry, "dev", "eth0")

    def add_ipv4(self, number: int) -> None:
        ip("-n", self.name(number), "address", "add", f"{self.address(number, '4')}/24", "dev", "eth0")

    def start_agents(self, undo: ExitStack) -> None:
        self.secret.touch(mode=0o600)
        self.secret.write_text(secrets.token_hex(32))
        for number in self.numbers[1:]:
            for version in "46":
                self._start_agent(number, version, undo)

    def listens(self, number: int, version: str) -> str:
        address = self.address(number, version)
        return f"{address}:{PORT}" if version == "4" else f"[{address}]:{PORT}"

    def folder(self, number: int, version: str) -> Path:
        return self.directory / f"{number}-{version}"

    def _start_agent(self, number: int, version: str, undo: ExitStack) -> None:
        folder = self.folder(number, version)
        folder.mkdir()
        config, log = self.directory / f"{number}-{version}.toml", self.directory / f"{number}-{version}.log"
        listen = self.listens(number, version)
        config.write_text(
            f'[agent]\nlisten = "{listen}"\ndurable = false\n[[folder]]\nname = "in"\npath = "{folder}"\n'
            f'[access]\nsecret_file = "{self.secret}"\n'
        )
        command = ["ip", "netns", "exec", self.name(number), *BLAST, "agent", "run", "--config", str(config)]
        output = undo.enter_context(log.open("w"))
        process = undo.enter_context(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT))
        undo.callback(process.terminate)
        eventually(lambda: "listening" in log.read_text(), f"the agent at {listen}")

    def has(self, number: int, file: Path, version: str = "4") -> bool:
        """Return whether this receiver has the file."""
        return (self.folder(number, version) / file.name).read_bytes() == file.read_bytes()

    def transmitted(self, number: int) -> int:
        """Return the bytes that this host has sent."""
        command = ["ip", "-n", self.name(number), "-s", "-j", "link", "show", "eth0"]
        (device,) = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return int(device["stats64"]["tx"]["bytes"])

    def send(self, file: Path, version: str, *options: str) -> dict[str, Any]:
        with self.sending(file, version, *options) as process:
            return self.result(process)

    def sending(self, file: Path, version: str, *options: str) -> subprocess.Popen[str]:
        """Start sending."""
        to = ",".join(f"h{number}={self.listens(number, version)}" for number in self.numbers[1:])
        command = ["ip", "netns", "exec", self.name(0), *BLAST, "send", str(file), "--to", to, "--json"]
        command += ["--secret-file", str(self.secret), *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        output, errors = process.communicate()
        assert process.returncode == 0, errors or output
        results: list[dict[str, Any]] = json.loads(output.splitlines()[-1])["transfers"]
        (result,) = results
        return result
