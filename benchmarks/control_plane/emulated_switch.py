"""An emulated OCS: its TL1 agent in a separate process, without fibers.

The process prints a JSON line with its address, answers each line on standard input with counts as JSON, and exits at
the end of standard input.

    python benchmarks/control_plane/emulated_switch.py --ports 500 --connect-ms 14.172
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.control_plane.child import print_json, serve_counts
from tl1_driver.dialects import DIALECTS
from tl1_driver.emulator.agent import EmulatedSwitch
from tl1_driver.emulator.light import no_light
from tl1_driver.protocol.circuits import Circuit, Port

LIT_DBM = -5.0


@dataclass
class Counts:
    """Counts of commands, and of the circuits that are currently connected."""

    commands: int = 0
    circuits: int = 0


def _everywhere(circuits: Sequence[Circuit]) -> dict[Port, float]:
    """Return optical power at every connected output."""
    return {Port("out", circuit.output): LIT_DBM for circuit in circuits}


async def _serve(options: argparse.Namespace) -> None:
    counts = Counts()

    async def apply(removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        counts.commands += 1
        counts.circuits += len(added) - len(removed)

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    switch = EmulatedSwitch(
        options.ports,
        options.ports,
        apply=apply,
        dialect=options.dialect,
        connect_seconds=None if options.connect_ms < 0 else options.connect_ms / 1000,
        disconnect_seconds=0.0,
        power=_everywhere if options.lit else no_light,
    )
    server = await switch.serve(listener)
    print_json({"event": "ready", "tl1": f"127.0.0.1:{listener.getsockname()[1]}"})
    await serve_counts(counts)
    server.close()


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ports", type=int, required=True)
    parser.add_argument("--connect-ms", type=float, default=0.0, help="connect time in ms; below 0: the vendor's")
    parser.add_argument("--lit", action="store_true", help="optical power at every connected output")
    parser.add_argument("--dialect", choices=sorted(DIALECTS), default="glimmerglass")
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
