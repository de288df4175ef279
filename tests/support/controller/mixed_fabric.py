"""A controller process with three emulated optical switches, one of each driver, and emulated ToRs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sqlite3
import threading
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import NamedTuple, TypeVar

import httpx

from benchmarks.control_plane.child import Child
from benchmarks.control_plane.drivers.served_switches import serve
from benchmarks.control_plane.drivers.switch_endpoints import SwitchEndpoint
from benchmarks.control_plane.rig import BLAST, START_SECONDS, await_devices, tors_command
from blast_client import Client
from blast_controller.configuration.reading import load
from blast_controller.core.journal.bodies import load_reservation
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.model import Circuit, Port
from optical_switch.session import BatchResult

T = TypeVar("T")
DRIVERS = {"ocs1": "tl1", "ocs2": "sonic-ocs", "ocs3": "netconf"}
"""The driver of each switch."""
ENDPOINTS = {"tl1": "tl1", "sonic-ocs": "sonic-ocs-gnmi", "netconf": "netconf"}
ROOT, RECEIVERS = "r1", tuple(f"r{number}" for number in range(2, 10))
"""Racks with a port on each switch."""
OWN_RACK = {"ocs1": "r10", "ocs2": "r11", "ocs3": "r12"}
"""Racks with one port, on this switch."""
PORTS = {"ocs1": 49, "ocs2": 50, "ocs3": 51}
"""The optical port of each ToR for a switch."""
SPLITTERS = {8: (13, range(13, 21)), 4: (14, range(21, 25)), 2: (15, range(25, 27))}
"""Input and outputs of the splitters of each switch, by fan-out."""
SWITCH_PORTS = 26
TIMEOUT = 30.0
_COUNTER = re.compile(r'blast_switch_errors_total\{code="[^"]*",driver="([^"]*)"\} (\S+)')


def host(rack: str) -> str:
    """Return the host of a rack."""
    return rack.replace("r", "h")


class ServedSwitch(NamedTuple):
    """A running emulated switch."""

    hardware: OpticalHardware
    endpoint: SwitchEndpoint


class MixedFabric:
    """The running processes and switches. The switches run on a thread of their own."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop, undo: ExitStack) -> None:
        self._folder, self._loop = folder, loop
        self._switches_end = AsyncExitStack()
        self.switches = {name: self._run(self._serve(name)) for name in DRIVERS}
        undo.callback(lambda: self._run(self._switches_end.aclose()))
        self.config = folder / "blast.toml"
        self.config.write_text("\n".join(self._lines()))
        self.fabric = load(self.config).build_fabric()
        log = folder / "log"
        controller = Child("controller", [*BLAST, "controller", "run", "--config", str(self.config)], log)
        undo.callback(controller.stop)
        self._addresses = controller.next(START_SECONDS)
        ports = ",".join(map(str, PORTS.values()))
        tors = Child("ToRs", tors_command(self._addresses["openflow"], len(self.fabric.racks), ports), log)
        undo.callback(tors.stop)
        tors.next(START_SECONDS)
        self.client = undo.enter_context(Client(self.thrift))
        await_devices(Client(self.thrift))

    @property
    def thrift(self) -> str:
        """The address for clients."""
        return str(self._addresses["thrift"])

    def held(self, name: str) -> set[Circuit]:
        """Return the circuits that a switch has set."""

        async def read() -> set[Circuit]:
            return set(self.switches[name].hardware.crossbar.circuits)

        return self._run(read())

    @contextlib.contextmanager
    def dead_port(self, name: str, port: Port) -> Iterator[None]:
        """Let a port of a switch be dead for some time."""
        dead = self.switches[name].hardware.faults.dead_ports

        async def change(act: Callable[[Port], None]) -> None:
            act(port)
            self.switches[name].hardware.changed()

        self._run(change(dead.add))
        try:
            yield
        finally:
            self._run(change(dead.discard))

    @contextlib.contextmanager
    def silent(self, name: str) -> Iterator[None]:
        """Let a switch answer nothing for some time."""
        faults = self.switches[name].hardware.faults
        faults.silent = True
        try:
            yield
        finally:
            faults.silent = False

    def write_by_another_client(self, name: str, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> None:
        """Change circuits by another session of the same driver."""

        async def write() -> BatchResult:
            session = self.switches[name].endpoint.access().new_session()
            await session.open()
            try:
                return await session.apply(deletes, adds)
            finally:
                await session.close()

        assert self._run(write()) == BatchResult()

    def journaled(self, name: str) -> set[Circuit]:
        """Return the circuits of a switch that the reservations in the journal have."""
        with contextlib.closing(sqlite3.connect(f"file:{self._journal}?mode=ro", uri=True)) as journal:
            rows = journal.execute("SELECT body FROM state WHERE kind = 'reservation'").fetchall()
        reservations = [load_reservation(json.loads(body), self.fabric) for (body,) in rows]
        layouts = [layout for reservation in reservations for layout in reservation.layouts]
        return {Circuit(c.input, c.output) for layout in layouts for c in layout.circuits if c.switch == name}

    def errors(self) -> dict[str, float]:
        """Return the errors of optical switches in the metrics, by driver."""
        text = httpx.get(f"http://{self._addresses['http']}/metrics", timeout=TIMEOUT).text
        found: dict[str, float] = {}
        for driver, count in _COUNTER.findall(text):
            found[driver] = found.get(driver, 0.0) + float(count)
        return found

    @property
    def _journal(self) -> Path:
        return self._folder / "journal.sqlite"

    def _run(self, work: Awaitable[T]) -> T:
        async def go() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(go(), self._loop).result(START_SECONDS)

    async def _serve(self, name: str) -> ServedSwitch:
        async def no_fibers(_removed: Sequence[Circuit], _added: Sequence[Circuit]) -> None:
            pass

        kind = ENDPOINTS[DRIVERS[name]]
        options = Namespace(driver=kind, ports=SWITCH_PORTS, connect_ms=2.0, dialect="glimmerglass", lit=False)
        hardware, addresses = await self._switches_end.enter_async_context(serve(options, no_fibers))
        return ServedSwitch(hardware, SwitchEndpoint.of(kind, SWITCH_PORTS, addresses))

    def _lines(self) -> Iterator[str]:
        yield from ("[controller]", *(f'{name} = "127.0.0.1:0"' for name in ("thrift", "openflow", "http")))
        yield from ("keep_warm_ms = 0", "min_lease_ms = 600_000")
        yield from ("[journal]", f"file = {json.dumps(str(self._journal))}")
        for name, switch in self.switches.items():
            size = (f"inputs = {SWITCH_PORTS}", f"outputs = {SWITCH_PORTS}", 'light_check = "off"')
            yield from ("[[optical_switch]]", f'name = "{name}"', *size, *switch.endpoint.keys(self._folder))
            for fan_out, (splitter_input, outputs) in SPLITTERS.items():
                yield from ("[[splitter]]", f'name = "{name}-{fan_out}"', f'optical_switch = "{name}"')
                yield from (f"input = {splitter_input}", f"outputs = {list(outputs)}")
        shared = dict.fromkeys((ROOT, *RECEIVERS), tuple(DRIVERS))
        for rack, names in {**shared, **{rack: (name,) for name, rack in OWN_RACK.items()}}.items():
            number = int(rack[1:])
            ports = ", ".join(
                f'{{ port = {PORTS[name]}, optical_switch = "{name}", input = {number}, output = {number} }}'
                for name in names
            )
            yield from ("[[rack]]", f'name = "{rack}"', f'datapath = "{number:016x}"', f"optical_ports = [{ports}]")
            yield f'hosts = [{{ name = "{host(rack)}", port = 1, ip = "10.0.{number}.1" }}]'


@contextlib.contextmanager
def mixed_fabric(folder: Path) -> Iterator[MixedFabric]:
    """Run a controller with a switch of each driver."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="emulated switches")
    thread.start()
    try:
        with ExitStack() as undo:
            yield MixedFabric(folder, loop, undo)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
