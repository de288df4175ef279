"""Several controllers beside a lab whose ToRs know all of them, with a journal in a real etcd."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from blast_api.ttypes import Grant, MulticastRequest
from blast_client import Client, ControllerUnreachable, NotLeader
from mininet_topos.addresses import ReservedAddresses
from mininet_topos.lab import Lab
from tests.support.etcd_cluster import EtcdCluster
from tests.support.etcd_server import EtcdServer
from tests.support.muting_proxy import MutingProxy
from tests.support.own_network import OwnNetwork
from tests.support.waiting import eventually
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS

BLAST = str(Path(sys.executable).with_name("blast"))
PATIENCE = 30.0


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


class WayToEtcd:
    """To all of its members."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._proxies = [MutingProxy(port).__enter__() for port in ports]
        self.ports = [proxy.port for proxy in self._proxies]

    def hold_requests(self) -> None:
        """What is said waits."""
        for proxy in self._proxies:
            proxy.hold_requests()

    def hold_answers(self) -> None:
        """What is said arrives, and nothing is heard."""
        for proxy in self._proxies:
            proxy.hold_answers()

    def pass_on(self) -> None:
        """All goes through."""
        for proxy in self._proxies:
            proxy.pass_on()

    def cut(self) -> None:
        """What was held back is lost."""
        for proxy in self._proxies:
            proxy.cut()

    def close(self) -> None:
        """End it."""
        for proxy in self._proxies:
            proxy.__exit__(None, None, None)


class Controller:
    """One of several, as a process."""

    def __init__(self, room: Room, number: int) -> None:
        self.thrift, self.openflow = room.addresses.take(), room.addresses.take()
        self.to_etcd = WayToEtcd(room.etcd.ports)
        """All that it says to etcd, and hears of it, goes through here."""
        self.network: OwnNetwork | None = None
        if room.has_cables:
            self.network = OwnNetwork()
            inwards = [port_of(address) for address in (self.thrift, self.openflow)]
            self.network.begin(inwards, [*self.to_etcd.ports, port_of(room.lab.tl1)])
        self.config = room.folder / f"controller-{number}.toml"
        self.log = room.folder / f"controller-{number}.log"
        text = room.lab.config.read_text()
        text = text.replace(room.lab.thrift, self.thrift).replace(room.lab.openflow, self.openflow)
        text = text.replace(room.lab.http, "127.0.0.1:0")
        text = re.sub(r"(\[recording\]\nfile = ).*", rf'\1"{room.folder}/recording-{number}.sqlite"', text)
        text = re.sub(r"\[journal\]\n(file|in_memory) = .*", room.journal(self.to_etcd.ports), text)
        self.config.write_text(text)
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        with self.log.open("a") as log:
            where = self.network.command if self.network is not None else []
            command = [*where, BLAST, "controller", "run", "--config", str(self.config)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline())["event"] == "ready", self.log.read_text()

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate(timeout=PATIENCE)
            self.process = None

    def close(self) -> None:
        """End it for good."""
        self.stop()
        self.to_etcd.close()
        if self.network is not None:
            self.network.end()

    def leads(self) -> bool:
        with Client(self.thrift, timeout=2.0) as client:
            return client.fabric().staleMs is None

    def may_lead(self) -> bool:
        """As `leads`; one that cannot be reached, because it begins anew, does not."""
        try:
            return self.leads()
        except (ControllerUnreachable, NotLeader):
            return False

    def told(self, event: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if f"event={event}" in line]


class Room:
    """A lab whose ToRs know both controllers, and an etcd; with `has_cables` each controller has one, to be pulled."""

    def __init__(
        self, folder: Path, lab: Lab, etcd: EtcdServer | EtcdCluster, has_cables: bool = False, lease: int = 1
    ) -> None:
        self.folder, self.lab, self.etcd, self.has_cables = folder, lab, etcd, has_cables
        self.prefix, self._lease = etcd.keys().prefix, lease
        self.addresses = ReservedAddresses()
        self.controllers = [Controller(self, number) for number in range(2)]
        for datapath in lab.plan.datapaths:
            targets = [f"tcp:{controller.openflow}" for controller in self.controllers]
            bridge = lab.names.bridge(datapath)
            subprocess.run(["ovs-vsctl", "set-controller", bridge, *targets], check=True, timeout=PATIENCE)
            for target in self._ids(bridge):
                limits = ["max_backoff=1000", "inactivity_probe=2000"]
                subprocess.run(["ovs-vsctl", "set", "controller", target, *limits], check=True, timeout=PATIENCE)

    @staticmethod
    def _ids(bridge: str) -> list[str]:
        command = ["ovs-vsctl", "--bare", "get", "bridge", bridge, "controller"]
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
        return re.findall(r"[0-9a-f-]{36}", found)

    def wait_for_tors(self, controller: Controller) -> None:
        """Until every ToR has a connection to this controller, whichever leads."""
        eventually(lambda: self._connected(controller) == len(self.lab.plan.datapaths), "the ToRs' connections")

    def _connected(self, controller: Controller) -> int:
        command = ["ovs-vsctl", "--bare", "--columns=is_connected", "find", "controller"]
        found = subprocess.run(
            [*command, f'target="tcp:{controller.openflow}"'],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        ).stdout
        return found.split().count("true")

    def journal(self, ports: Sequence[int]) -> str:
        """The table of the configuration, for who reaches etcd by these ports."""
        own = [f'prefix = "{self.prefix}"', f"lease_s = {self._lease}"]
        return "\n".join(["[journal.etcd]", *self.etcd.settings(ports), *own])

    @property
    def thrift(self) -> str:
        return ",".join(controller.thrift for controller in self.controllers)

    def client(self) -> Client:
        return Client(self.thrift, timeout=PATIENCE)

    def close(self) -> None:
        """End all controllers."""
        for controller in self.controllers:
            controller.close()
        self.addresses.close()

    def start(self) -> None:
        for controller in self.controllers:
            controller.start()
        self.wait_for_devices()

    def wait_for_devices(self) -> None:
        with self.client() as client:
            eventually(lambda: self._all_connected(client), "all devices at the leader")

    @staticmethod
    def _all_connected(client: Client) -> bool:
        fabric = client.fabric()
        if fabric.staleMs is not None:
            client.close()
            client._controllers.move(client.address, None)
            return False
        return all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches))

    @property
    def leader(self) -> Controller:
        return eventually(self._only_leader, "exactly one leader")

    def _only_leader(self) -> Controller | None:
        found = [controller for controller in self.controllers if controller.process and controller.may_lead()]
        return found[0] if len(found) == 1 else None

    @property
    def other(self) -> Controller:
        return next(controller for controller in self.controllers if controller is not self.leader)

    def grant(self, key: str) -> Grant:
        with self.client() as client:
            return client.request(MulticastRequest(key, "r1h1", ["r2h1", "r3h1"], 10**8), timeout=PATIENCE)

    def withdraw(self, key: str) -> None:
        with self.client() as client:
            client.withdraw(key)

    def circuits(self) -> set[tuple[int, int]]:
        async def read() -> set[tuple[int, int]]:
            host, port = self.lab.tl1.split(":")
            client = SwitchClient(host, int(port), DIALECTS["glimmerglass"])
            await client.open()
            try:
                return {(state.input, state.output) for state in await client.circuits()}
            finally:
                await client.close()

        return asyncio.run(read())

    def rules(self) -> dict[str, float]:
        """Blast's rules on the ToRs, each with its age in seconds."""
        found = {}
        for datapath in self.lab.plan.datapaths:
            bridge = self.lab.names.bridge(datapath)
            mine = "cookie=0xb1a5000000000000/0xffff000000000000"
            dump = subprocess.run(
                ["ovs-ofctl", "-O", "OpenFlow13", "dump-flows", bridge, mine],
                capture_output=True,
                text=True,
                check=True,
                timeout=PATIENCE,
            ).stdout
            for line in dump.splitlines():
                if (age := re.search(r"duration=([\d.]+)s", line)) is not None:
                    rule = re.sub(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*, ", "", line)
                    found[f"{bridge} {rule.strip()}"] = float(age[1])
        return found
