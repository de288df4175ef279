r"""The lab's optical circuit switch: an emulated switch of any kind, whose circuits move real packets.

    python -m mininet_topos.topology.optical_switch --lab b3f2 --namespace-of 4711 --ports 16 --splitter 9=9,10,11,12 \
        --folder /run/blast-lab/b3f2/ocs1

It listens where operators reach it (the loopback of the namespace it was started in), and runs `tc` in the namespace
of its ports. Its monitors read the values of `power.py`, and `faults.py` injects faults. When it serves it prints one
JSON line. It starts without circuits: a restart is a power cycle.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from blast_base.command_line import checked
from blast_base.endpoint import Endpoint, parse_listening
from mininet_topos.kernel.errors import LabError
from mininet_topos.kernel.names import Names
from mininet_topos.kernel.namespace import enter_network_of
from mininet_topos.kernel.netdev import batch
from mininet_topos.topology.faults import FaultServer
from mininet_topos.topology.optical_fabric import EmulatedSplitter, OpticalFabric
from mininet_topos.topology.power import SENSITIVITY_DBM, PowerModel, transmitter_inputs
from mininet_topos.topology.switch_kinds import DEFAULT_KIND, KINDS
from mininet_topos.topology.switch_servers import LabSwitchSettings
from optical_switch.model import Circuit

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
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    names, kind = Names(options.lab), KINDS[options.switch]
    options.folder.mkdir(mode=0o700, exist_ok=True)
    with _tc_in_network_of(options.namespace_of) as run_tc:
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

        settings = LabSwitchSettings(
            listen=options.listen,
            ports=options.ports,
            apply=apply,
            connect_seconds=options.connect_seconds,
            power=model,
            # Ports of ToRs are duplex.
            receivers=model.transmitters,
            sensitivity_dbm=SENSITIVITY_DBM,
            folder=options.folder.absolute(),
        )
        async with kind.serve(settings) as switch:
            fault_server = FaultServer(switch, model, names, run_tc)
            if options.faults is not None:
                await fault_server.serve(options.faults, options.ports)
            sys.stdout.write(json.dumps({"event": "ready", "address": str(switch.address)}) + "\n")
            sys.stdout.flush()
            await ended.wait()


@contextmanager
def _tc_in_network_of(pid: int) -> Iterator[Callable[[list[str]], None]]:
    """Yield a function that runs `tc` in the network namespace of a process, from a thread that stays there.

    The other threads stay in the namespace where operators reach the switch: its parts connect to each other there.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="tc") as thread:
        thread.submit(enter_network_of, pid).result()
        yield lambda lines: thread.submit(batch, "tc", lines).result()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mininet_topos.topology.optical_switch", description=__doc__)
    parser.add_argument("--lab", required=True, help="id of the lab, the prefix of its netdevs")
    parser.add_argument("--namespace-of", required=True, type=int, help="a process in the namespace of the ports")
    parser.add_argument("--ports", required=True, type=int, help="number of duplex ports")
    parser.add_argument("--splitter", action="append", default=[], type=EmulatedSplitter.parse, help="INPUT=OUTPUT,…")
    parser.add_argument("--switch", choices=KINDS, default=DEFAULT_KIND, help="kind of switch")
    parser.add_argument("--folder", required=True, type=Path, help="folder for the files of the switch")
    parser.add_argument(
        "--listen", type=checked(parse_listening), default=Endpoint("127.0.0.1", 0), help="where the switch is served"
    )
    parser.add_argument("--faults", type=Path, help="Unix socket at which faults are asked for (default: none are)")
    parser.add_argument("--connect-seconds", type=float, default=CONNECT_SECONDS, help="time to answer a connect")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
