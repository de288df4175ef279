"""Where the time of a grant cycle goes: the steps of the controller, beside what the bare operations take.

A cycle is a request of 3 to 5 racks, its grant and its end. Two loads on one machine, with emulated devices over real
sockets: 20 clients with one outstanding request each, and one client. The table has CPU and wall time and calls by
step, CPU time and context switches by thread, and commits, records and bytes by cycle. The floor is what the steps of a
grant would take alone: a Thrift call, two commits, and the slower of an OpenFlow barrier and a TL1 command, each
measured in the same run and, like the grants, with pauses in between, in which caches cool down.

    .venv/bin/python benchmarks/control_plane/cycle_steps.py --seconds 10
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.control_plane.child import Child
from benchmarks.control_plane.cycles import commits, load
from benchmarks.control_plane.emulated_tors import BARRIER_REPLY, BARRIER_REQUEST, HEADER, HELLO, message
from benchmarks.control_plane.rig import FIRST_OPTICAL_PORT, HERE, Rig, Size, tors_command
from blast_client.api.aio import AsyncClient
from optical_switch.model import Circuit
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS

STEP_CLOCK = (sys.executable, str(HERE / "step_clock.py"))
START_SECONDS = 60.0
REPEATS, PAUSE = 200, 0.01
"""Repetitions of a bare operation, and seconds between two."""
Figures = dict[str, Any]
Operation = Callable[[], Awaitable[object]]


def busy(seconds: float) -> Figures:
    """Return the figures of 20 clients by cycle."""
    with Rig(Size(100, 50), blast=STEP_CLOCK) as rig:
        before, commands_before = rig.controller.ask(), rig.switch.ask()
        cycles = load(rig, "cycles", racks=100, racks_per_job=5, jobs=20, seconds=seconds)
        after, commands = rig.controller.ask(), rig.switch.ask()["commands"] - commands_before["commands"]
    count = cycles["cycles"]
    steps = by_cycle(after["steps"], before["steps"], count)
    return {
        "cycles_per_second": cycles["cycles_per_second"],
        "steps": steps,
        "threads": by_cycle(after["threads"], before["threads"], count),
        "commits": steps["commit-and-sync"]["calls"],
        "records": steps["encode-records"]["calls"],
        "switch_commands": commands / count,
        "bytes_written": (after["bytes_written"] - before["bytes_written"]) / count,
    }


def by_cycle(
    after: Mapping[str, Mapping[str, float]], before: Mapping[str, Mapping[str, float]], cycles: int
) -> dict[str, dict[str, float]]:
    """Return the differences of named figures, divided by the number of cycles."""
    return {
        name: {key: round((value - before.get(name, {}).get(key, 0)) / cycles, 4) for key, value in figures.items()}
        for name, figures in after.items()
    }


def alone(requests: int) -> Figures:
    """Return the latency of a grant, with one request outstanding, beside its floor, in ms."""
    size = Size(8, 8, keep_warm_ms=0)
    with Rig(size) as rig:
        grant = load(rig, "one", racks=8, jobs=1, requests=requests)["grant_ms"]["p50"]
        call = asyncio.run(thrift_call(rig.thrift))
    commit, barrier, tl1 = commits(requests)["p50"], openflow_barrier(), asyncio.run(tl1_command(size))
    floor = call + 2 * commit + max(barrier, tl1)
    return {
        "grant_ms": grant,
        "floor_ms": round(floor, 3),
        "grant_to_floor": round(grant / floor, 2),
        "thrift_call_ms": call,
        "commit_ms": commit,
        "openflow_barrier_ms": barrier,
        "tl1_command_ms": tl1,
    }


async def thrift_call(address: str) -> float:
    """Return the median time of a call that does nothing, in ms."""
    async with AsyncClient(address) as client:
        return await _median(client.ping)


def openflow_barrier() -> float:
    """Return the median time of a barrier on a ToR that has nothing else to do, in ms."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as undo:
        return asyncio.run(_barrier(Path(folder) / "log", undo))


async def _barrier(log: Path, undo: ExitStack) -> float:
    connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Future()
    server = await asyncio.start_server(lambda *streams: connected.set_result(streams), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    undo.callback(Child("ToR", tors_command(f"{host}:{port}", 1, str(FIRST_OPTICAL_PORT)), log).stop)
    reader, writer = await asyncio.wait_for(connected, START_SECONDS)
    writer.write(message(HELLO, 0))
    xids = itertools.count(1)

    async def barrier() -> None:
        writer.write(message(BARRIER_REQUEST, next(xids)))
        async for kind in _messages(reader):
            if kind == BARRIER_REPLY:
                return

    median = await _median(barrier)
    writer.close()
    server.close()
    return median


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[int]:
    while True:
        header = await reader.readexactly(HEADER.size)
        _, kind, length, _ = HEADER.unpack(header)
        await reader.readexactly(length - HEADER.size)
        yield kind


async def tl1_command(size: Size) -> float:
    """Return the median time of a command that connects four circuits on a switch without latency, in ms."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as undo:
        words = ["--ports", str(size.switch_ports), "--connect-ms", "0", "--dialect", size.dialect]
        child = Child("switch", [sys.executable, str(HERE / "emulated_switch.py"), *words], Path(folder) / "log")
        undo.callback(child.stop)
        host, port = child.next(START_SECONDS)["address"].split(":")
        client = SwitchClient(host, int(port), DIALECTS[size.dialect])
        await client.open()
        circuits = [Circuit(port, port) for port in range(1, 5)]
        median = await _median(lambda: client.connect(circuits), lambda: client.disconnect(circuits))
        await client.close()
    return median


async def _nothing() -> None:
    pass


async def _median(operation: Operation, undo: Operation = _nothing) -> float:
    """Return the median time of an operation in ms; its reverse is not counted."""
    times = []
    for _ in range(REPEATS):
        await asyncio.sleep(PAUSE)
        began = time.perf_counter()
        await operation()
        times.append(time.perf_counter() - began)
        await undo()
    return round(1000 * statistics.median(times), 3)


def lines(figures: Figures) -> Iterator[str]:
    """Yield the lines of the tables."""
    cycle, grant = figures["busy"], figures["alone"]
    yield f"20 clients: {cycle['cycles_per_second']:.0f} cycles/s; by cycle:"
    for title, part in (("step", cycle["steps"]), ("thread", cycle["threads"])):
        yield ""
        yield machine.as_table([{title: name, **values} for name, values in part.items()])
    yield ""
    yield f"{cycle['commits']:.2f} commits, {cycle['records']:.1f} records, {cycle['bytes_written']:.0f} bytes written"
    yield f"{cycle['switch_commands']:.2f} commands to the switch"
    yield "one client, ms: " + ", ".join(f"{name.removesuffix('_ms')} {value:g}" for name, value in grant.items())


def main() -> None:
    """Measure and print."""
    parser = machine.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of the load in s (default: 10)")
    parser.add_argument("--requests", type=int, default=300, help="requests of the one client (default: 300)")
    options = parser.parse_args()
    figures = {"busy": busy(options.seconds), "alone": alone(options.requests)}
    machine.show(options.json, figures, lines(figures))


if __name__ == "__main__":
    main()
