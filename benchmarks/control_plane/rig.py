"""The real controller with devices emulated over real sockets, for the benchmarks of the control plane."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.control_plane.child import Child
from benchmarks.control_plane.drivers.switch_endpoints import SwitchEndpoint
from benchmarks.set_up import SetUp
from blast_client import Client

HERE = Path(__file__).resolve().parent
FIRST_OPTICAL_PORT = 49
FAN_OUT = 4
START_SECONDS = 60.0
BLAST = (sys.executable, "-c", "from blast_client.cli.command import main; raise SystemExit(main())")


@dataclass(frozen=True)
class Size:
    """A fabric: racks of one host, 1:4 splitters, and one OCS that takes `connect_ms` to connect."""

    racks: int
    splitters: int
    connect_ms: float = 0.0
    ports_per_rack: int = 1
    keep_warm_ms: int = 60_000
    warm_reserve: float = 0.5
    dialect: str = "glimmerglass"
    light_check: str = "off"
    driver: str = "tl1"

    @property
    def switch_ports(self) -> int:
        """The number of ports of the OCS, each with an input and an output."""
        return self.racks * self.ports_per_rack + self.splitters * FAN_OUT

    @property
    def words(self) -> str:
        """A short description."""
        ports = f" of {self.ports_per_rack} optical ports" if self.ports_per_rack > 1 else ""
        switch = f"{self.connect_ms:g} ms" if self.driver == "tl1" else f"{self.connect_ms:g} ms by {self.driver}"
        return f"{self.racks} racks{ports}, {self.splitters} splitters 1:{FAN_OUT}, switch {switch}"


def host(rack: int) -> str:
    """Return the host of a rack (from 1)."""
    return f"h{rack}"


def tors_command(openflow: str, count: int, ports: str) -> list[str]:
    """Return the command of emulated ToRs, which print a line when they are connected."""
    words = ["--controller", openflow, "--count", str(count), "--optical-ports", ports]
    return [sys.executable, str(HERE / "emulated_tors.py"), *words]


def switch_command(size: Size) -> list[str]:
    """Return the command of the emulated OCS of a fabric."""
    words = ["--ports", str(size.switch_ports), "--connect-ms", str(size.connect_ms), "--dialect", size.dialect]
    lit = ["--lit"] if size.light_check != "off" else []
    return [sys.executable, str(HERE / "emulated_switch.py"), *words, "--driver", size.driver, *lit]


class Rig(SetUp):
    """A controller with its devices, each in a separate process that is ended on exit.

    The journal is in the folder `journal_in`, by default a temporary one; `blast` is the command of the controller.
    """

    def __init__(self, size: Size, journal_in: Path | None = None, blast: Sequence[str] = BLAST) -> None:
        self.size = size
        self._blast = blast
        self._journal_in = journal_in
        self._addresses = dict.fromkeys(("thrift", "openflow"), "127.0.0.1:0")

    def _set_up(self, undo: ExitStack) -> None:
        prefix = "blast-control-plane-"
        self.directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
        self.log = self.directory / "log"
        self._journal = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=self._journal_in)))
        size = self.size
        self.switch = self.child(undo, "optical switch", switch_command(size))
        ready = self.switch.next(START_SECONDS)
        self._endpoint = SwitchEndpoint.of(size.driver, size.switch_ports, ready, size.dialect)
        self.start_controller()
        undo.callback(self._stop_controller)
        ports = ",".join(str(FIRST_OPTICAL_PORT + n) for n in range(self.size.ports_per_rack))
        command = tors_command(self._addresses["openflow"], self.size.racks, ports)
        self.tors = self.child(undo, "ToRs", command)
        self.tors.next(START_SECONDS)
        self.wait_devices()

    @property
    def thrift(self) -> str:
        """The address for clients."""
        return self._addresses["thrift"]

    def child(self, undo: ExitStack, name: str, command: list[str]) -> Child:
        """Start a process that is stopped with `undo`."""
        child = Child(name, command, self.log)
        undo.callback(child.stop)
        return child

    def start_controller(self) -> None:
        """Start the controller, at the same addresses as before."""
        config = self.directory / "blast.toml"
        config.write_text(self._config())
        self.controller = Child("controller", [*self._blast, "controller", "run", "--config", str(config)], self.log)
        ready = self.controller.next(START_SECONDS)
        self._addresses = {name: ready[name] for name in self._addresses}

    def _stop_controller(self) -> None:
        """Stop the current controller."""
        self.controller.stop()

    def wait_devices(self) -> float:
        """Wait until the controller has every device; return the time."""
        await_devices(Client(self.thrift))
        return time.monotonic()

    def _config(self) -> str:
        size = self.size
        lines = [
            "[controller]",
            *(f'{name} = "{address}"' for name, address in self._addresses.items()),
            "min_lease_ms = 600_000",
            # All clients have the same address here and share one limit.
            "max_calls_per_second = 100_000",
            f"keep_warm_ms = {size.keep_warm_ms}",
            f"warm_reserve = {size.warm_reserve}",
            "[journal]",
            f"file = {json.dumps(str(self._journal / 'journal.sqlite'))}",
            "[[optical_switch]]",
            'name = "ocs"',
            f"inputs = {size.switch_ports}",
            f"outputs = {size.switch_ports}",
            *self._endpoint.keys(self.directory),
            f'light_check = "{size.light_check}"',
        ]
        for rack in range(1, size.racks + 1):
            lines += ["[[rack]]", f'name = "r{rack}"', f'datapath = "{rack:016x}"', self._optical_ports(rack)]
            lines.append(f'hosts = [{{ name = "{host(rack)}", port = 1, ip = "10.{rack >> 8}.{rack & 255}.1" }}]')
        for number in range(size.splitters):
            first = size.racks * size.ports_per_rack + number * FAN_OUT + 1
            lines += ["[[splitter]]", f'name = "s{number + 1}"', 'optical_switch = "ocs"', f"input = {first}"]
            lines.append(f"outputs = {list(range(first, first + FAN_OUT))}")
        return "\n".join(lines) + "\n"

    def _optical_ports(self, rack: int) -> str:
        first = (rack - 1) * self.size.ports_per_rack + 1
        ports = [
            f'{{ port = {FIRST_OPTICAL_PORT + n}, optical_switch = "ocs", input = {first + n}, output = {first + n} }}'
            for n in range(self.size.ports_per_rack)
        ]
        return f"optical_ports = [{', '.join(ports)}]"


def await_devices(client: Client, seconds: float = START_SECONDS) -> None:
    """Wait until all devices of a controller are connected. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    with client:
        while True:
            fabric = client.fabric()
            if all(one.connected for one in fabric.racks) and all(one.connected for one in fabric.opticalSwitches):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"a device is not connected to the controller after {seconds:g} s: see its log")
            # Each answer takes processor time from the starting controller.
            time.sleep(0.2)
