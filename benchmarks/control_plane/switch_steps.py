"""Claim: a driver's step takes at most 1.6 times as long as its bare protocol exchange.

A step sets one circuit on an emulated switch without latency, in a process of its own. The driver's side is the
controller's executor: from `session.apply` until the change is confirmed, which includes the wait for its effect where
the switch answers before. The bare side (`bare_exchanges.py`) sends prebuilt bytes. Rounds of both sides alternate; a
step begins after a pause, in which caches cool down. The removal of the circuit is not counted.

    .venv/bin/python benchmarks/control_plane/switch_steps.py
    .venv/bin/python benchmarks/control_plane/switch_steps.py --batch 64

With `--batch N` the executor sets N circuits that were handed in together, each as a reservation of its own, on a
switch of 320 ports: all of them, and with one input that the switch refuses. The table has the transactions of the
driver, and the changes that the hardware of the switch was asked for.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.control_plane.child import Child
from benchmarks.control_plane.drivers.bare_exchanges import BARE_EXCHANGES, CIRCUIT
from benchmarks.control_plane.drivers.executor_steps import ExecutorSteps
from benchmarks.control_plane.drivers.switch_endpoints import DRIVERS, SwitchEndpoint
from benchmarks.control_plane.rig import HERE, START_SECONDS
from benchmarks.median_interval import median_interval
from optical_switch.model import Circuit

BAR = 1.6
STEP_PORTS = 8
"""Few, so that the emulator's own work for each port does not hide that of the driver."""
BATCH_PORTS = 320
REFUSED_INPUT = 40
WARM_UP, PAUSE = 5, 0.01
"""Steps of a round that are not counted, and seconds between two steps."""
Row = dict[str, Any]


@contextmanager
def running_switch(driver: str, ports: int, refused: Sequence[int] = ()) -> Iterator[tuple[Child, SwitchEndpoint]]:
    """Run an emulated switch without latency in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="blast-switch-steps-") as folder, ExitStack() as undo:
        words = ["--ports", str(ports), "--driver", driver]
        words += [word for number in refused for word in ("--refused-input", str(number))]
        child = Child("switch", [sys.executable, str(HERE / "emulated_switch.py"), *words], Path(folder) / "log")
        undo.callback(child.stop)
        yield child, SwitchEndpoint.of(driver, ports, child.next(START_SECONDS))


# ------------------------------------------------------------------------------------------------------------- steps


def driver_times(endpoint: SwitchEndpoint, steps: int) -> list[float]:
    """Return the times of the executor's steps, in ms."""
    times = []
    with ExecutorSteps(endpoint) as executor:
        for _ in range(WARM_UP + steps):
            time.sleep(PAUSE)
            outcome = executor.connect([CIRCUIT])
            if outcome.failures:
                raise RuntimeError(f"the executor did not set the circuit: {outcome.failures[0]}")
            times.append(1000 * outcome.seconds)
            time.sleep(PAUSE)
            executor.disconnect([CIRCUIT])
    return times[WARM_UP:]


async def bare_times(endpoint: SwitchEndpoint, steps: int) -> list[float]:
    """Return the times of bare exchanges, in ms."""
    times = []
    exchange = BARE_EXCHANGES[endpoint.driver](endpoint)
    try:
        await exchange.open()
        for _ in range(WARM_UP + steps):
            await asyncio.sleep(PAUSE)
            began = time.perf_counter()
            await exchange.connect()
            times.append(1000 * (time.perf_counter() - began))
            await asyncio.sleep(PAUSE)
            await exchange.disconnect()
    finally:
        await exchange.close()
    return times[WARM_UP:]


def compare(driver: str, rounds: int, steps: int) -> Row:
    """Return the medians of both sides, and the ratio with its interval over the rounds."""
    ours: list[list[float]] = []
    bare: list[list[float]] = []
    with running_switch(driver, STEP_PORTS) as (_, endpoint):
        for number in range(rounds):
            machine.progress(f"{driver}: round {number + 1} of {rounds}")
            # Each side begins every second round.
            if number % 2:
                ours.append(driver_times(endpoint, steps))
            bare.append(asyncio.run(bare_times(endpoint, steps)))
            if not number % 2:
                ours.append(driver_times(endpoint, steps))
    machine.progress("")
    ratios = [statistics.median(a) / statistics.median(b) for a, b in zip(ours, bare, strict=True)]
    low, ratio, high = median_interval(ratios)
    return {
        "driver": driver,
        "driver_ms": statistics.median(chain(*ours)),
        "bare_ms": statistics.median(chain(*bare)),
        "ratio": ratio,
        "low": low,
        "high": high,
        "within_bar": ratio <= BAR,
    }


def step_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table of steps."""
    yield machine.as_table(rows)
    for row in rows:
        if not row["within_bar"]:
            yield f"{row['driver']}: {row['ratio']:.2f} times its bare exchange (bar {BAR:g})  MISSED"


# ----------------------------------------------------------------------------------------------------------- batches


def batches(driver: str, count: int, rounds: int) -> Iterator[Row]:
    """Yield the figures of batches that the switch takes, and of those with one input that it refuses."""
    circuits = [Circuit(number, BATCH_PORTS + 1 - number) for number in range(1, count + 1)]
    for refused in ([], [min(count, REFUSED_INPUT)]):
        with running_switch(driver, BATCH_PORTS, refused) as (switch, endpoint):
            yield {"driver": driver, "refused": len(refused), **_batch(switch, endpoint, circuits, refused, rounds)}


def _batch(
    switch: Child, endpoint: SwitchEndpoint, circuits: Sequence[Circuit], refused: Sequence[int], rounds: int
) -> Row:
    times, transactions, changes = [], [], []
    possible = [circuit for circuit in circuits if circuit.input not in refused]
    with ExecutorSteps(endpoint) as executor:
        # One round more, which is not counted.
        for number in range(rounds + 1):
            machine.progress(f"{endpoint.driver}: batch {number + 1} of {rounds + 1}")
            before = switch.ask()["planned"]
            outcome = executor.connect(circuits)
            if len(outcome.failures) != len(refused):
                raise RuntimeError(f"{len(outcome.failures)} circuits failed: {outcome.failures[:1]}")
            times.append(1000 * outcome.seconds)
            transactions.append(outcome.transactions)
            changes.append(switch.ask()["planned"] - before)
            executor.disconnect(possible)
            time.sleep(PAUSE)
    machine.progress("")
    return {
        "batch_ms": statistics.median(times[1:]),
        "max_ms": max(times[1:]),
        "transactions": max(transactions),
        "hardware_changes": max(changes),
    }


def main() -> None:
    """Measure and print."""
    parser = machine.parser(__doc__)
    parser.add_argument("--driver", action="append", choices=DRIVERS, help="driver, may be repeated (default: all)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each driver (default: 7)")
    parser.add_argument("--steps", type=int, default=40, help="steps of each side in a round (default: 40)")
    parser.add_argument("--batch", type=int, metavar="CIRCUITS", help="measure batches of this size instead")
    options = parser.parse_args()
    chosen = options.driver or DRIVERS
    if options.batch is not None:
        if not 1 <= options.batch <= BATCH_PORTS:
            parser.error(f"--batch must be between 1 and {BATCH_PORTS}")
        rows = [row for driver in chosen for row in batches(driver, options.batch, options.rounds)]
        machine.show(options.json, {"batches": rows}, [machine.as_table(rows)])
        return
    rows = [compare(driver, options.rounds, options.steps) for driver in chosen]
    machine.show(options.json, {"steps": rows}, step_lines(rows))


if __name__ == "__main__":
    main()
