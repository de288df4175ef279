"""What the rows of `control_plane.py` run on: the real daemon, and devices emulated over real sockets."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from child import Child

from blast_client import Client

HERE = Path(__file__).resolve().parent
FIRST_OPTICAL_PORT = 49
WAYS = 4
START_SECONDS = 60.0
CONTROLLER = (sys.executable, "-c", "from blast_client.command import main; raise SystemExit(main())")


@dataclass(frozen=True)
class Size:
    """A machine room: racks of one host, 1:4 splitters, one optical switch that takes `connect_ms` to connect."""

    racks: int
    splitters: int
    connect_ms: float = 0.0
    ports_per_rack: int = 1
    keep_warm_ms: int = 60_000
    warm_reserve: float = 0.5
    dialect: str = "glimmerglass"
    light_check: str = "off"

    @property
    def switch_ports(self) -> int:
        """Ports of the optical switch, each with an input and an output."""
        return self.racks * self.ports_per_rack + self.splitters * WAYS

    @property
    def words(self) -> str:
        """In a few words."""
        ports = f" of {self.ports_per_rack} optical ports" if self.ports_per_rack > 1 else ""
        return f"{self.racks} racks{ports}, {self.splitters} splitters 1:{WAYS}, switch {self.connect_ms:g} ms"


def host(rack: int) -> str:
    """The host of a rack, which counts from 1."""
    return f"h{rack}"


class Rig:
    """A controller with its devices, all in processes of their own; ended on exit, whatever happens.

    The journal lies in `journal_in`, by default where temporary files do.
    """

    def __init__(
        self, size: Size, journal_in: Path | None = None, also: Iterable[str] = (), journal: Iterable[str] = ()
    ) -> None:
        """`also` are further addresses that the controller serves, by their names in its configuration; `journal` are
        lines of that which say where its journal lies, other than in a file.
        """
        self._journal_lines = list(journal)
        self.size = size
        self._journal_in = journal_in
        self._to_end = ExitStack()
        self.addresses = dict.fromkeys(("thrift", "openflow", *also), "127.0.0.1:0")
        """Where the controller is found, by the name of what it serves."""

    def __enter__(self) -> Rig:
        with ExitStack() as undo:
            prefix = "blast-control-plane-"
            self.directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
            self._journal = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=self._journal_in)))
            self.switch = self.child(undo, "optical switch", self._switch_command())
            self._tl1 = self.switch.next(START_SECONDS)["tl1"]
            self.start_controller()
            undo.callback(self._stop_controller)
            self.tors = self.child(undo, "ToRs", self._tors_command())
            self.tors.next(START_SECONDS)
            self.wait_devices()
            self._to_end = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._to_end.close()

    @property
    def thrift(self) -> str:
        """Where clients connect."""
        return self.addresses["thrift"]

    @property
    def log(self) -> Path:
        """What the processes have to say."""
        return self.directory / "log"

    def child(self, undo: ExitStack, name: str, command: list[str]) -> Child:
        """A process that is stopped with `undo`."""
        child = Child(name, command, self.log)
        undo.callback(child.stop)
        return child

    def start_controller(self) -> None:
        """Start it; the addresses are the same every time."""
        config = self.directory / "blast.toml"
        config.write_text(self._config())
        self.controller = Child("controller", [*CONTROLLER, "controller", "run", "--config", str(config)], self.log)
        ready = self.controller.next(START_SECONDS)
        self.addresses = {name: ready[name] for name in self.addresses}

    def _stop_controller(self) -> None:
        """The one that runs now."""
        self.controller.stop()

    def wait_devices(self) -> float:
        """Wait until the controller has every device; the moment when it was so."""
        deadline = time.monotonic() + START_SECONDS
        with Client(self.thrift) as client:
            while True:
                fabric = client.fabric()
                if all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches)):
                    return time.monotonic()
                if time.monotonic() > deadline:
                    raise TimeoutError(f"not every device is connected; see {self.log}")
                # Telling the whole fabric is work for the controller, which has enough of it now.
                time.sleep(0.2)

    def _switch_command(self) -> list[str]:
        script = str(HERE / "emulated_switch.py")
        size = ["--ports", str(self.size.switch_ports), "--connect-ms", str(self.size.connect_ms)]
        return [sys.executable, script, *size, "--dialect", self.size.dialect, *(["--lit"] if self._lit else [])]

    @property
    def _lit(self) -> bool:
        """Whether anybody looks for light."""
        return self.size.light_check != "off"

    def _tors_command(self) -> list[str]:
        ports = ",".join(str(FIRST_OPTICAL_PORT + n) for n in range(self.size.ports_per_rack))
        count = ["--count", str(self.size.racks), "--optical-ports", ports]
        script = str(HERE / "emulated_tors.py")
        return [sys.executable, script, "--controller", self.addresses["openflow"], *count]

    def _config(self) -> str:
        size = self.size
        lines = [
            "[controller]",
            *(f'{name} = "{address}"' for name, address in self.addresses.items()),
            "lease_minimum_ms = 600_000",
            # All clients come from one address here.
            "calls_per_second = 100_000",
            f"keep_warm_ms = {size.keep_warm_ms}",
            f"warm_reserve = {size.warm_reserve}",
            *(self._journal_lines or ["[journal]", f"file = {json.dumps(str(self._journal / 'journal.sqlite'))}"]),
            "[[optical_switch]]",
            'name = "ocs"',
            f'address = "{self._tl1}"',
            f"inputs = {size.switch_ports}",
            f"outputs = {size.switch_ports}",
            f'dialect = "{size.dialect}"',
            f'light_check = "{size.light_check}"',
        ]
        for rack in range(1, size.racks + 1):
            lines += ["[[rack]]", f'name = "r{rack}"', f'datapath = "{rack:016x}"', self._optical_ports(rack)]
            lines.append(f'hosts = [{{ name = "{host(rack)}", port = 1, ip = "10.{rack >> 8}.{rack & 255}.1" }}]')
        for number in range(size.splitters):
            first = size.racks * size.ports_per_rack + number * WAYS + 1
            lines += ["[[splitter]]", f'name = "s{number + 1}"', 'optical_switch = "ocs"', f"input = {first}"]
            lines.append(f"outputs = {list(range(first, first + WAYS))}")
        return "\n".join(lines) + "\n"

    def _optical_ports(self, rack: int) -> str:
        first = (rack - 1) * self.size.ports_per_rack + 1
        ports = [
            f'{{ port = {FIRST_OPTICAL_PORT + n}, optical_switch = "ocs", input = {first + n}, output = {first + n} }}'
            for n in range(self.size.ports_per_rack)
        ]
        return f"optical_ports = [{', '.join(ports)}]"
