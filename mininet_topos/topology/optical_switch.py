"""The lab's optical circuit switch: a TL1 agent whose connects and deletes move real packets.

    python -m mininet_topos.topology.optical_switch --lab b3f2 --namespace-of 4711 --ports 16 --splitter 9=9,10,11,12

It listens where operators reach it (the loopback of the namespace it was started in), then moves into the namespace of
its ports, so that its `tc` children work there. Its monitors read the values of `power.py`, and `faults.py` injects
faults. When it serves it prints one JSON line. It starts without circuits: a restart is a power cycle.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from blast_base.endpoint import parse_endpoint
from mininet_topos.kernel.errors import LabError, PlanError
from mininet_topos.kernel.names import Names
from mininet_topos.kernel.namespace import enter_network_of
from mininet_topos.kernel.netdev import batch
from mininet_topos.topology.faults import FaultServer
from mininet_topos.topology.optical_fabric import EmulatedSplitter, OpticalFabric
from mininet_topos.topology.power import PowerModel, transmitter_inputs
from tl1_driver.client import Circuit
from tl1_driver.emulator.agent import EmulatedSwitch

NICENESS = -10
"""Open vSwitch's own."""

CONNECT_SECONDS = 0.014172
"""Optical switch configuration in Table II of the paper; the agent's own work happens inside this time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until terminated; return the exit status."""
    options = _parser().parse_args(arguments)
    # The emulated hardware must not wait for processes on hosts, if we may raise its priority.
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    try:
        asyncio.run(_serve(options))
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


async def _serve(options: argparse.Namespace) -> None:
    listener = _listen(options.listen)
    enter_network_of(options.namespace_of)
    names, run_tc = Names(options.lab), partial(batch, "tc")
    fabric = OpticalFabric(names, options.ports, options.splitter, run_tc)
    fabric.prepare()
    model = PowerModel(transmitter_inputs(options.ports, options.splitter), options.splitter)

    async def apply(removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        fabric.apply(removed, added)
        try:
            fault_server.follow([Circuit(*pair) for pair in fabric.circuits.items()])
        except LabError:
            fabric.apply(added, removed)
            raise

    switch = EmulatedSwitch(
        options.ports, options.ports, apply=apply, connect_seconds=options.connect_seconds, power=model
    )
    fault_server = FaultServer(switch, model, names, run_tc)
    server = await switch.serve(listener)
    if options.faults is not None:
        await fault_server.serve(options.faults, options.ports)
    address, port = listener.getsockname()[:2]
    sys.stdout.write(json.dumps({"event": "ready", "tl1": f"{address}:{port}"}) + "\n")
    sys.stdout.flush()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    server.close()


def _listen(address: str) -> socket.socket:
    host, port = parse_endpoint(address, min_port=0)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, ValueError) as refusal:
        listener.close()
        raise PlanError(f"cannot listen on {address}: {refusal}") from refusal
    listener.listen()
    listener.setblocking(False)
    return listener


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mininet_topos.topology.optical_switch", description=__doc__)
    parser.add_argument("--lab", required=True, help="id of the lab, the prefix of its netdevs")
    parser.add_argument("--namespace-of", required=True, type=int, help="a process in the namespace of the ports")
    parser.add_argument("--ports", required=True, type=int, help="number of duplex ports")
    parser.add_argument("--splitter", action="append", default=[], type=EmulatedSplitter.parse, help="INPUT=OUTPUT,…")
    parser.add_argument("--listen", default="127.0.0.1:0", help="where TL1 is served")
    parser.add_argument("--faults", type=Path, help="Unix socket at which faults are asked for (default: none are)")
    parser.add_argument("--connect-seconds", type=float, default=CONNECT_SECONDS, help="time to answer a connect")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
