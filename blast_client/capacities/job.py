"""What `blast measure` does: asks whoever knows, shows what it heard, and writes it down."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from tqdm import tqdm

from blast_client.base_error import WrongArgument
from blast_client.capacities.by_agents import AgentCapacities, Findings, Step
from blast_client.capacities.by_controller import ControllerCapacities
from blast_client.capacities.by_file import FileCapacities
from blast_client.capacities.by_monitor import MonitorCapacities
from blast_client.capacities.capacities import Capacities
from blast_client.capacities.rounds import Pair
from blast_client.capacities.table import capacities_table
from blast_client.failures import DONE, FAILED, PARTLY
from blast_client.interrupts import ended_by_signals
from blast_client.options import connect
from blast_client.send_job import agent_credentials
from blast_client.send_stopped import INTERRUPTED
from blast_transport.credentials.admission import dialer
from blast_transport.measuring.flows import Size

_MAX_TOLD = 20
"""Dead links, a line each."""


def run_measure(arguments: argparse.Namespace) -> int:
    """Find the capacities; the exit status. Raises what the client and the transports raise."""
    try:
        root, receivers = _root_and_receivers(arguments)
        _refuse_unwritable(arguments.output)
        with ended_by_signals():
            found = _find(arguments, root, receivers)
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "stopped: nothing was written, and nobody goes on measuring")
    _tell_faults(found)
    return _give(arguments, found)


def _root_and_receivers(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    names = [name for name, _, _ in arguments.hosts]
    root = arguments.root or socket.gethostname()
    receivers = [name for name in names if name != root]
    if not receivers:
        raise WrongArgument(f"{root} is the only host: name others with --hosts")
    return root, receivers


def _find(arguments: argparse.Namespace, root: str, receivers: Sequence[str]) -> Findings:
    if arguments.topology:
        with connect(arguments) as client:
            return _all_well(ControllerCapacities(client).capacities(root, receivers))
    if arguments.monitor is not None:
        return _all_well(MonitorCapacities(arguments.monitor).capacities(root, receivers))
    if arguments.file is not None:
        return _all_well(FileCapacities(arguments.file).capacities(root, receivers))
    size = Size(arguments.bytes, arguments.seconds, arguments.streams)
    with closing(tqdm(unit="step", leave=False, disable=not sys.stderr.isatty(), file=sys.stderr)) as bar:

        def report(step: Step) -> None:
            bar.total, bar.n = step.total, step.done
            bar.set_description(step.what)

        return AgentCapacities(arguments.hosts, dialer(agent_credentials(arguments)), size, report).measure(
            root, receivers
        )


def _all_well(capacities: Capacities) -> Findings:
    return Findings(capacities)


def _tell_faults(found: Findings) -> None:
    for name, reason in found.away.items():
        sys.stderr.write(f"blast: {name} does not answer: {reason}\n")
    dead: dict[Pair, str] = {link: why for link, why in found.dead.items() if not found.away.keys() & set(link)}
    for (start, end), reason in list(dead.items())[:_MAX_TOLD]:
        sys.stderr.write(f"blast: nothing gets from {start} to {end}: {reason}\n")
    if len(dead) > _MAX_TOLD:
        sys.stderr.write(f"blast: … and {len(dead) - _MAX_TOLD} more links are dead\n")
    for name, reason in found.alone.items():
        sys.stderr.write(f"blast: the access link of {name} counts for no more than its best path: {reason}\n")
    wanted = [name for name in found.capacities.hosts if name != found.capacities.root]
    lost = [name for name in wanted if name not in found.capacities.receivers]
    if lost and (found.away or found.dead):
        sys.stderr.write(f"blast: left out of the receivers, which data has to reach: {', '.join(lost)}\n")


def _give(arguments: argparse.Namespace, found: Findings) -> int:
    written = json.dumps(found.capacities.to_json()) + "\n"
    sys.stdout.write(written if arguments.json else capacities_table(found.capacities) + "\n")
    if arguments.output is not None:
        try:
            _write(arguments.output, written)
        except OSError as error:
            return _fail(FAILED, f"{arguments.output} cannot be written: {error.strerror}")
    return DONE if found.whole else PARTLY


def _write(path: Path, text: str) -> None:
    """A file is there whole or not at all; a pipe or a device is written to. Raises OSError."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    whole = path.resolve()
    unfinished = whole.with_name(f"{whole.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(whole)
    finally:
        unfinished.unlink(missing_ok=True)


def _refuse_unwritable(path: Path | None) -> None:
    """Before anything is measured in vain. Raises WrongArgument."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise WrongArgument(f"{path} cannot be written: choose a file in a folder that is there")


def _fail(status: int, sentence: str) -> int:
    sys.stderr.write(f"blast: {sentence}\n")
    return status
