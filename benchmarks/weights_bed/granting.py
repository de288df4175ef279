"""A real controller that grants the light of a bed: it rules the bed's optical switch over TL1, as in a machine room.

The switch is the lab's own, on the bed's fibres, and takes as long as that of the paper. Hosts have their fibres in the
switch, without a ToR between: the ToRs that the controller tells over OpenFlow forward nothing. All three run on the
sender's host and talk over its loopback, so that what they say takes no link.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from child import Child
from control_plane_rig import CONTROLLER, START_SECONDS
from transport_bed.bed import SENDER, Bed
from transport_bed.failures import CannotRun

from blast_client import Client
from mininet_topos.namespace import run_in_network_of

_TORS = Path(__file__).resolve().parents[1] / "emulated_tors.py"
_OPTICAL_PORT = 49


def name_of(host: int) -> str:
    """A host, as the controller knows it."""
    return f"h{host}"


class Granting:
    """The controller of a bed with shaped links, ended on exit. Raises ChildFailed, CannotRun."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._undo = ExitStack()
        self.thrift = "127.0.0.1:0"
        """Where it is asked, on the sender's host."""

    def __enter__(self) -> Granting:
        with ExitStack() as undo:
            folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="blast-granting-")))
            tl1 = self._child(undo, folder, "optical switch", self._switch_command()).next(START_SECONDS)["tl1"]
            config = folder / "blast.toml"
            config.write_text(self._config(folder, tl1))
            controller = self._child(undo, folder, "controller", [*CONTROLLER, *_run(config)])
            ready = controller.next(START_SECONDS)
            self.thrift = ready["thrift"]
            tors = [sys.executable, str(_TORS), "--controller", ready["openflow"]]
            tors += ["--count", str(len(self._bed.plan.hosts)), "--optical-ports", str(_OPTICAL_PORT)]
            self._child(undo, folder, "ToRs", tors).next(START_SECONDS)
            run_in_network_of(self._bed.pid(SENDER), self._await_devices)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def _child(self, undo: ExitStack, folder: Path, name: str, command: list[str]) -> Child:
        child = Child(name, self._bed.on(SENDER, command), folder / "log")
        undo.callback(child.stop)
        return child

    def _await_devices(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        with Client(self.thrift) as client:
            while True:
                fabric = client.fabric()
                if all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches)):
                    return
                if time.monotonic() > deadline:
                    raise CannotRun("the controller of the bed does not reach its devices")
                time.sleep(0.1)

    def _switch_command(self) -> list[str]:
        switch = self._bed.switch
        command = [sys.executable, "-m", "mininet_topos.optical_switch", "--lab", self._bed.lab]
        command += ["--namespace-of", str(switch.namespace), "--ports", str(switch.ports)]
        return [*command, "--splitter", switch.splitter.wiring]

    def _config(self, folder: Path, tl1: str) -> str:
        switch, rate = self._bed.switch, self._bed.plan.shape.rate_mbps
        assert rate is not None
        lines = [
            *('[controller]\nthrift = "127.0.0.1:0"\nopenflow = "127.0.0.1:0"', "keep_warm_ms = 0"),
            f"[journal]\nfile = {json.dumps(str(folder / 'journal.sqlite'))}",
            f"[fabric]\nlight_rate_gbps = {rate / 1000}",
            f'[[optical_switch]]\nname = "ocs"\naddress = "{tl1}"\ndialect = "glimmerglass"',
            f"inputs = {switch.ports}\noutputs = {switch.ports}",
            f'[[splitter]]\nname = "s1"\noptical_switch = "ocs"\ninput = {switch.splitter.input}',
            f"outputs = {list(switch.splitter.outputs)}",
        ]
        return "\n".join([*lines, *map(self._rack, self._bed.plan.hosts)]) + "\n"

    def _rack(self, host: int) -> str:
        port = f'port = {_OPTICAL_PORT}, optical_switch = "ocs", input = {host + 1}, output = {host + 1}'
        address = self._bed.packet_address(host)
        return (
            f'[[rack]]\nname = "r{host}"\ndatapath = "{host + 1:016x}"\noptical_ports = [{{ {port} }}]\n'
            f'hosts = [{{ name = "{name_of(host)}", port = 1, ip = "{address}" }}]'
        )


def _run(config: Path) -> list[str]:
    return ["controller", "run", "--config", str(config)]
