"""One ToR of a lab on an Open vSwitch of its own, whose daemon can be killed and started while the others live on."""

from __future__ import annotations

import os
import subprocess
from types import TracebackType

from mininet_topos.lab import Lab
from mininet_topos.names import MARK
from mininet_topos.netdev import batch, query
from mininet_topos.topology import tor_name
from tests.support.fabric_truth import private_directory
from tests.support.waiting import eventually

_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
DATAPATH = "datapath_type=dummy"
"""The user-space datapath once more: the machine's own Open vSwitch has the tap that `netdev` would make."""


class PrivateSwitch:
    """Takes a ToR out of the machine's Open vSwitch for the time of a `with` block, and brings it back afterwards."""

    def __init__(self, lab: Lab, datapath: int) -> None:
        self._lab, self._bridge = lab, lab.names.bridge(datapath)
        self._node = lab.net[tor_name(datapath)]
        self._directory = private_directory(lab)
        self._env = {**os.environ, "OVS_RUNDIR": str(self._directory), MARK: lab.id}
        self._database: subprocess.Popen[bytes] | None = None
        self._daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PrivateSwitch:
        self._directory.mkdir()
        query(["ovs-vsctl", "--timeout=10", "del-br", self._bridge])
        file = self._directory / "conf.db"
        query(["ovsdb-tool", "create", str(file), _SCHEMA])
        remote = f"--remote=punix:{self._directory}/db.sock"
        self._database = self._run("ovsdb-server", str(file), remote, "-vconsole:off", "-vsyslog:off")
        self._wait_for("db.sock")
        self._vsctl("--no-wait", "init")
        self.start()
        self._node.start(self._lab.net.controllers)
        self._vsctl(*(word.replace("datapath_type=netdev", DATAPATH) for word in self._node._transaction))
        self._make_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (self._daemon, self._database):
            if process is not None:
                process.kill()
                process.wait()
        for file in self._directory.iterdir():
            file.unlink()
        self._directory.rmdir()
        remake(self._lab, self._node)

    def start(self) -> None:
        """Start the daemon; the database tells it what bridge there is, but rules it has none."""
        self._daemon = self._run(
            "ovs-vswitchd",
            f"unix:{self._directory}/db.sock",
            "--pidfile",
            "--enable-dummy",
            "-vconsole:off",
            "-vsyslog:off",
            f"--log-file={self._directory}/ovs-vswitchd.log",
        )
        self._wait_for("ovs-vswitchd.pid")

    def restart(self) -> None:
        """Kill the daemon and start it again, as after a power cycle of the ToR."""
        assert self._daemon is not None
        self._daemon.kill()
        self._daemon.wait()
        (self._directory / "ovs-vswitchd.pid").unlink()
        (self._directory / f"{self._bridge}.mgmt").unlink(missing_ok=True)
        self.start()
        self._wait_for(f"{self._bridge}.mgmt")
        self._make_ready()

    def _make_ready(self) -> None:
        """What the lab does for a new bridge: rates, links up, and the packet network's own rules."""
        interfaces = self._node._data_interfaces()
        _shape(interfaces)
        batch("ip", [f"link set {interface.name} up" for interface in interfaces])
        socket = f"unix:{self._directory}/{self._bridge}.mgmt"
        query(["ovs-ofctl", "-O", "OpenFlow13", "add-flows", socket, "-"], "\n".join(self._node._rules))

    def _vsctl(self, *words: str) -> None:
        query(["ovs-vsctl", f"--db=unix:{self._directory}/db.sock", "--timeout=20", *words])

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=self._env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _wait_for(self, file: str) -> None:
        eventually((self._directory / file).exists, f"{file} of the private Open vSwitch")


def remake(lab: Lab, node: object) -> None:
    """Make a ToR's bridge on the machine's Open vSwitch, empty but for the packet network's rules."""
    node.start(lab.net.controllers)
    type(node).batchStartup([node])


def _shape(interfaces: list) -> None:
    """The lab's lines add disciplines, where Open vSwitch may have left one."""
    lines = [line for interface in interfaces for line in interface.shaping]
    batch("tc", [line.replace("qdisc add", "qdisc replace") for line in lines])
