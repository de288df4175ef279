"""A real controller that grants the optical network of a bed, and drives the bed's OCS over TL1.

The OCS is that of the lab, on the fibers of the bed, with the latency of the paper's. The fibers of hosts end in the
OCS, without a ToR: the ToRs of the controller only emulate OpenFlow. All three run on the sender's host and use its
loopback, so that they do not load a link.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.control_plane.child import Child
from benchmarks.control_plane.rig import BLAST, FIRST_OPTICAL_PORT, START_SECONDS, await_devices, tors_command
from benchmarks.set_up import SetUp
from benchmarks.transfers.bed.bed import SENDER, Bed
from blast_client import Client
from mininet_topos.kernel.namespace import run_in_network_of


class Granting(SetUp):
    """The controller of a bed with shaped links, ended on exit. Raises ChildFailedError, TimeoutError."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self.thrift = ""
        """The controller's address on the sender's host."""

    def _set_up(self, undo: ExitStack) -> None:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="blast-granting-")))
        address = self._start(undo, folder, "optical switch", self._switch_command(folder))["address"]
        config = folder / "blast.toml"
        config.write_text(self._config(folder, address))
        command = [*BLAST, "controller", "run", "--config", str(config)]
        ready = self._start(undo, folder, "controller", command)
        self.thrift = ready["thrift"]
        tors = tors_command(ready["openflow"], len(self._bed.plan.hosts), str(FIRST_OPTICAL_PORT))
        self._start(undo, folder, "ToRs", tors)
        run_in_network_of(self._bed.pid(SENDER), lambda: await_devices(Client(self.thrift)))

    def _start(self, undo: ExitStack, folder: Path, name: str, command: list[str]) -> dict[str, str]:
        child = Child(name, self._bed.on(SENDER, command), folder / "log")
        undo.callback(child.stop)
        return child.next(START_SECONDS)

    def _switch_command(self, folder: Path) -> list[str]:
        switch = self._bed.switch
        command = [sys.executable, "-m", "mininet_topos.topology.optical_switch", "--lab", self._bed.lab]
        command += ["--namespace-of", str(switch.namespace), "--ports", str(switch.ports)]
        return [*command, "--splitter", switch.splitter.wiring, "--folder", str(folder)]

    def _config(self, folder: Path, address: str) -> str:
        switch, rate = self._bed.switch, self._bed.plan.shape.rate_mbps
        assert rate is not None
        lines = [
            '[controller]\nthrift = "127.0.0.1:0"\nopenflow = "127.0.0.1:0"\nkeep_warm_ms = 0',
            f"[journal]\nfile = {json.dumps(str(folder / 'journal.sqlite'))}",
            f"[fabric]\noptical_rate_gbps = {rate / 1000}",
            f'[[optical_switch]]\nname = "ocs"\naddress = "{address}"\ndialect = "glimmerglass"',
            f"inputs = {switch.ports}\noutputs = {switch.ports}",
            f'[[splitter]]\nname = "s1"\noptical_switch = "ocs"\ninput = {switch.splitter.input}',
            f"outputs = {list(switch.splitter.outputs)}",
        ]
        return "\n".join([*lines, *map(self._rack, self._bed.plan.hosts)]) + "\n"

    def _rack(self, host: int) -> str:
        port = f'port = {FIRST_OPTICAL_PORT}, optical_switch = "ocs", input = {host + 1}, output = {host + 1}'
        return (
            f'[[rack]]\nname = "r{host}"\ndatapath = "{host + 1:016x}"\noptical_ports = [{{ {port} }}]\n'
            f'hosts = [{{ name = "h{host}", port = 1, ip = "{self._bed.packet_address(host)}" }}]'
        )
