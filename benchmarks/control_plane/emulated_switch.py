"""An emulated OCS: its agent in a separate process, without fibers.

The process prints a JSON line with its address, answers each line on standard input with counts as JSON, and exits at
the end of standard input.

    python benchmarks/control_plane/emulated_switch.py --ports 500 --connect-ms 14.172
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.control_plane.child import print_json, serve_counts
from benchmarks.control_plane.drivers.served_switches import serve
from benchmarks.control_plane.drivers.switch_endpoints import DRIVERS
from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.model import Circuit
from tl1_driver.dialects import DIALECTS


@dataclass
class Counts:
    """Counts of changes that were carried out, of changes with refused ones, and of the present circuits."""

    commands: int = 0
    planned: int = 0
    circuits: int = 0


async def _serve(options: argparse.Namespace) -> None:
    counts = Counts()

    async def apply(removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        counts.commands += 1
        counts.circuits += len(added) - len(removed)

    async with serve(options, apply) as (hardware, addresses):
        hardware.faults.refused_inputs.update(options.refused_input)
        _count_plans(hardware, counts)
        print_json({"event": "ready", **addresses})
        await serve_counts(counts)


def _count_plans(hardware: OpticalHardware, counts: Counts) -> None:
    """Count the requests of the agent to the hardware, also refused ones."""
    original = hardware.plan_and_set

    async def plan_and_set(plan: Callable[[], CrossbarChange], arrived: float | None = None) -> asyncio.Task[None]:
        counts.planned += 1
        return await original(plan, arrived)

    # The agents take no hardware of another class.
    hardware.plan_and_set = plan_and_set  # type: ignore[method-assign]


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ports", type=int, required=True)
    parser.add_argument("--driver", choices=DRIVERS, default="tl1", help="driver that it is for (default: tl1)")
    parser.add_argument("--connect-ms", type=float, default=0.0, help="connect time in ms; below 0: the vendor's")
    parser.add_argument("--lit", action="store_true", help="optical power at every connected output")
    parser.add_argument("--dialect", choices=sorted(DIALECTS), default="glimmerglass", help="dialect of TL1")
    parser.add_argument(
        "--refused-input", type=int, action="append", default=[], help="input that is refused, may be repeated"
    )
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
