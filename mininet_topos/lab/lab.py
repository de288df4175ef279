"""A running lab: the emulated network, the agent of its optical switch, and the controller.

    with Lab(preset("small")) as lab:
        lab.host("r1h1").cmd("ping -c1 10.0.2.1")

Whatever becomes of the process that holds a lab, `cleanup.down(lab.id)` removes all of it.
"""

from __future__ import annotations

import socket
import sysconfig
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

from blast_base.endpoint import parse_endpoint
from mininet_topos.kernel.addresses import LOOPBACK, ReservedAddresses
from mininet_topos.kernel.controller_namespace import ControllerNamespace, Side
from mininet_topos.kernel.errors import HostError
from mininet_topos.kernel.etcd import LabEtcd
from mininet_topos.kernel.mininet_import import Host, Mininet, setLogLevel
from mininet_topos.kernel.namespace import open_socket
from mininet_topos.kernel.netdev import query
from mininet_topos.kernel.process import LabProcess
from mininet_topos.kernel.socket_buffers import raise_receive_default, widen_send_buffer
from mininet_topos.lab import registry
from mininet_topos.lab.cleanup import down
from mininet_topos.lab.controller_config import Endpoints, Service, ServiceOptions, render
from mininet_topos.lab.requirements import require_lab_host
from mininet_topos.topology.build import CORE, BlastTopo, Build
from mininet_topos.topology.counters import Counters
from mininet_topos.topology.faults import FaultInjector
from mininet_topos.topology.nodes import ControllerTarget
from mininet_topos.topology.optical_node import OpticalSwitch
from mininet_topos.topology.plan import OPTICAL_SWITCH, LabPlan
from mininet_topos.topology.switch_kinds import DEFAULT_KIND, switch_kind

_CONTROLLER_SECONDS = 120.0
"""The largest labs read hundreds of devices first, on few processors."""
_CORE_SECONDS = 60.0
"""For the bridges of the packet network to forward."""

ControllerCommand = Callable[[Path], list[str]]
"""From the path of a configuration file to the command that runs a controller with it."""


def blast_controller(config: Path) -> list[str]:
    """Return the command that runs the controller of this installation."""
    return [str(Path(sysconfig.get_path("scripts")) / "blast"), "controller", "run", "--config", str(config)]


class Lab:
    """A lab built from `plan`.

    `controller` is the command of its controller, or None to run none: the ToRs then keep trying `openflow`, where one
    may be started by hand with the file `config`. `switch` is the kind of the optical switch, a key of
    `switch_kinds.KINDS`, and `agent` the address at which it is served (None: not at all). Of several `controllers`,
    which share a journal in the lab's own etcd, the first to start is the leader. Further parameters configure the
    controller, see `Service`.
    """

    def __init__(
        self,
        plan: LabPlan,
        *,
        controller: ControllerCommand | None = blast_controller,
        switch: str = DEFAULT_KIND,
        agent: str | None = f"{LOOPBACK}:0",
        controllers: int = 1,
        **wishes: Unpack[ServiceOptions],
    ) -> None:
        self.plan = plan
        self._controller_command, self._agent = controller, agent
        self._kind = switch_kind(switch)
        self._asked = Service(**wishes)
        self._controller: LabProcess | None = None
        self._addresses = ReservedAddresses()
        self._standbys = [LabStandby(number) for number in range(2, controllers + 1)]
        self._etcd: LabEtcd | None = None
        self._namespaces: list[ControllerNamespace] = []
        self._report_end: Callable[[str], None] | None = None
        self.net: Any = None

    def start(self) -> None:
        """Build the network and start everything; remove all parts again if that fails.

        Raises `HostError` if this machine lacks a requirement, `ProcessError` if agent or controller do not start.
        """
        require_lab_host()
        self._kind.check()
        self.names = registry.claim()
        try:
            self._start_network()
            if self._standbys:
                self._etcd = LabEtcd(self._addresses.take(), self._addresses.take(), self.id, self.directory)
                self._make_namespaces(self._etcd)
            self._write_config()
            if self._controller_command is not None:
                self.start_controller(self._controller_command)
                for standby, namespace in zip(self._standbys, self._namespaces[1:], strict=True):
                    standby.start(_entering(namespace, self._controller_command), self.id, self.directory)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything and remove it from the machine; a second time there is nothing to do."""
        network, self.net = self.net, None
        try:
            self.stop_controller()
            for standby in self._standbys:
                standby.stop()
            for namespace in self._namespaces:
                namespace.end()
            if self._etcd is not None:
                self._etcd.stop()
            if network is not None:
                network.stop()
        finally:
            self._addresses.close()
            down(self.id)

    def start_controller(self, command: ControllerCommand = blast_controller) -> None:
        """Start the controller and wait until it serves; sets `thrift`. Raises `ProcessError`."""
        log = self.directory / "controller.log"
        words = command(self.config)
        if self._namespaces:
            words = self._namespaces[0].command(words)
        self._controller = LabProcess("controller", words, self.id, log)
        ready = self._controller.wait_ready(_CONTROLLER_SECONDS)
        self.thrift = str(ready["thrift"])
        if self._report_end is not None:
            self._controller.watch(self._report_end)
        registry.write_state(self.id, self.describe())

    @property
    def controllers(self) -> str:
        """Where clients find all controllers, with commas between."""
        return ",".join([self.thrift, *(standby.thrift for standby in self._standbys)])

    def kill_controller(self) -> None:
        """End the controller at once, as SIGKILL does; `start_controller` brings up another."""
        if self._controller is not None:
            self._controller.kill()
            self._controller = None

    def stop_controller(self) -> None:
        """Stop the controller, if one was started; rules and circuits stay."""
        if self._controller is not None:
            self._controller.stop()
            self._controller = None

    def reboot_optical_switch(self) -> None:
        """Power the optical switch off and on: its circuits are gone, and every fault that was asked for."""
        self.optical_switch.stop_agent()
        self.optical_switch.start_agent()
        if self._report_end is not None:
            self.optical_switch.watch_agent(self._report_end)

    def watch(self, report: Callable[[str], None]) -> None:
        """Call back, on another thread, with a sentence when the controller or the switch's agent ends by itself."""
        self._report_end = report
        if self._controller is not None:
            self._controller.watch(report)
        self.optical_switch.watch_agent(report)

    @property
    def id(self) -> str:
        """The lab's id, the prefix of all its names."""
        return self.names.lab

    @property
    def directory(self) -> Path:
        """Where state, configuration and logs are."""
        return registry.directory(self.id)

    @property
    def config(self) -> Path:
        """The controller's configuration file."""
        return self.directory / "controller.toml"

    @property
    def journal(self) -> Path:
        """The controller's journal."""
        return self.directory / "journal.sqlite"

    @property
    def switch_address(self) -> str:
        """Where the optical switch is served, `address:port`."""
        return self.optical_switch.address

    @property
    def controller_pid(self) -> int | None:
        """The controller's process id, if one was started."""
        return self._controller.pid if self._controller is not None else None

    @property
    def optical_switch(self) -> OpticalSwitch:
        """The optical switch's node."""
        node: OpticalSwitch = self.net[OPTICAL_SWITCH]
        return node

    @property
    def faults(self) -> FaultInjector:
        """Fault injection for the running optical switch."""
        return FaultInjector(self.plan, self.optical_switch.faults)

    @property
    def counters(self) -> Counters:
        """Interface counters."""
        return Counters(self.plan, self.names)

    def host(self, name: str) -> Host:
        """Return a host's Mininet node.

        Raises `KeyError` for an unknown name.
        """
        return self.net[name]

    def pid(self, host: str) -> int:
        """Return the id of the process that holds a host's network namespace."""
        pid: int = self.host(host).pid
        return pid

    def address(self, host: str) -> str:
        """Return a host's address on the packet network."""
        return next(each.ip for rack in self.plan.rack_plans for each in rack.hosts if each.name == host)

    def open_socket(
        self, host: str, family: socket.AddressFamily, kind: socket.SocketKind, protocol: int = 0
    ) -> socket.socket:
        """Open a socket inside a host, held by this process."""
        return open_socket(self.host(host).pid, family, kind, protocol)

    def describe(self) -> dict[str, object]:
        """Return the data that a user needs: id, addresses, files, sizes."""
        return {
            "lab": self.id,
            "summary": self.plan.size,
            "thrift": self.controllers if self._controller is not None else None,
            "openflow": self.openflow,
            "page": f"http://{self.http}/" if self._controller is not None else None,
            "switch": self._kind.name,
            "switch_address": self.switch_address or None,
            "config": str(self.config),
            "plan": asdict(self.plan),
            "rate_factor": self.plan.rate_factor,
        }

    def __enter__(self) -> Lab:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start_network(self) -> None:
        setLogLevel("warning")
        raise_receive_default()
        self.openflow, self.thrift, self.http = (self._addresses.take() for _ in range(3))
        for standby in self._standbys:
            standby.openflow, standby.thrift, standby.http = (self._addresses.take() for _ in range(3))
        self.net = Mininet(topo=None, controller=None, build=False)
        self.net.topo = BlastTopo(self.plan, Build(self.names, self._agent, self.directory / "ocs1.log", self._kind))
        for number, address in enumerate([self.openflow, *(standby.openflow for standby in self._standbys)]):
            host, port = parse_endpoint(address)
            self.net.addController(f"c{number}", ControllerTarget, ip=host, port=port, lab=self.id)
        self.net.build()
        self.net.start()
        if not widen_send_buffer():
            self._send_a_first_packet()
            widen_send_buffer()
        self._wait_for_the_core()

    def _wait_for_the_core(self) -> None:
        deadline = time.monotonic() + _CORE_SECONDS
        while not self.net[CORE].connected():
            if time.monotonic() > deadline:
                raise HostError(f"the packet core does not forward on all uplinks after {_CORE_SECONDS:g} s")
            time.sleep(0.01)

    def _send_a_first_packet(self) -> None:
        """Send a packet to an address that bridges never forward, out of the first rack's uplink."""
        rack = self.plan.rack_plans[0]
        frame = f"0180c200000e{rack.hosts[0].mac.replace(':', '')}88cc".ljust(120, "0")
        order = f"in_port=controller packet={frame} actions=output:{rack.uplink_port}"
        query(["ovs-ofctl", "-O", "OpenFlow13", "packet-out", self.names.bridge(rack.datapath), order])

    def _make_namespaces(self, etcd: LabEtcd) -> None:
        """Create a namespace for each of several controllers, as on machines of their own."""
        outward = {etcd.address: Side.ETCD, self.switch_address: Side.DEVICES}
        first = (self.thrift, self.http, self.openflow)
        for thrift, http, openflow in (first, *((one.thrift, one.http, one.openflow) for one in self._standbys)):
            inward = {thrift: Side.CLIENTS, http: Side.CLIENTS, openflow: Side.DEVICES}
            self._namespaces.append(ControllerNamespace(self.id, outward, inward))

    def controller_namespace(self, number: int) -> ControllerNamespace:
        """Return the network namespace of the controller of this number, from 1.

        Raises `HostError` if the controller has none of its own.
        """
        if not 1 <= number <= len(self._namespaces):
            raise HostError("only several controllers (--controllers 3) have network namespaces that can be cut off")
        return self._namespaces[number - 1]

    def _write_config(self) -> None:
        endpoints = Endpoints(self.thrift, self.openflow, self.switch_address, self.http)
        etcd = None if self._etcd is None else self._etcd.address
        service = replace(
            self._asked, journal=self.journal, etcd=etcd, switch=self._kind, switch_folder=self.optical_switch.folder
        )
        self.config.write_text(render(self.plan, endpoints, service))
        for standby in self._standbys:
            others = replace(endpoints, thrift=standby.thrift, openflow=standby.openflow, http=standby.http)
            # Its recording lies beside its journal's name, though the journal itself is in etcd.
            its_own = replace(service, journal=self.journal.with_name(f"journal{standby.number}.sqlite"))
            standby.config(self.directory).write_text(render(self.plan, others, its_own))
        registry.write_state(self.id, self.describe())


class LabStandby:
    """A further controller of a lab."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.thrift = self.openflow = self.http = ""
        self._process: LabProcess | None = None

    def config(self, folder: Path) -> Path:
        """Return the path of its configuration file."""
        return folder / f"controller{self.number}.toml"

    def start(self, command: ControllerCommand, lab: str, folder: Path) -> None:
        """Start it and wait until it serves. Raises `ProcessError`."""
        name = f"controller {self.number}"
        log = folder / f"controller{self.number}.log"
        self._process = LabProcess(name, command(self.config(folder)), lab, log)
        self._process.wait_ready(_CONTROLLER_SECONDS)

    def stop(self) -> None:
        """End it, if it was started."""
        if self._process is not None:
            self._process.stop()
            self._process = None


def _entering(namespace: ControllerNamespace, command: ControllerCommand) -> ControllerCommand:
    return lambda config: namespace.command(command(config))
