"""The job of `blast measure`: query a source of capacities, print them and write them to a file."""

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

from blast_base.command_line import DONE, FAILED, PARTLY
from blast_client.api.base_error import InvalidArgumentError
from blast_client.capacities.by_agents import AgentCapacities, AgentFindings, MeasurementStep
from blast_client.capacities.by_controller import ControllerCapacities
from blast_client.capacities.by_file import FileCapacities
from blast_client.capacities.by_monitor import MonitorCapacities
from blast_client.capacities.capacities import Capacities
from blast_client.capacities.rounds import Pair
from blast_client.capacities.table import capacities_table
from blast_client.cli.interrupts import ended_by_signals
from blast_client.cli.options import connect
from blast_client.send.job import agent_credentials
from blast_client.send.stopped import INTERRUPTED
from blast_transport.credentials.admission import dialer
from blast_transport.measuring.flows import FlowSize

_MAX_LISTED = 20
"""Maximum number of dead links that are listed."""


def run_measure(arguments: argparse.Namespace) -> int:
    """Print and write the capacities; return the exit status. Raises BlastError, TransportError."""
    try:
        root, receivers = _root_and_receivers(arguments)
        _refuse_unwritable(arguments.output)
        with ended_by_signals():
            found = _find(arguments, root, receivers)
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "stopped: the measurement ended and no file was written")
    _report_faults(found)
    return _give(arguments, found)


def _root_and_receivers(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    names = [name for name, _, _ in arguments.hosts]
    root = arguments.root or socket.gethostname()
    receivers = [name for name in names if name != root]
    if not receivers:
        raise InvalidArgumentError(f"{root} is the only host: name others with --hosts")
    return root, receivers


def _find(arguments: argparse.Namespace, root: str, receivers: Sequence[str]) -> AgentFindings:
    if arguments.topology:
        with connect(arguments) as client:
            return _all_well(ControllerCapacities(client).capacities(root, receivers))
    if arguments.monitor is not None:
        return _all_well(MonitorCapacities(arguments.monitor).capacities(root, receivers))
    if arguments.file is not None:
        return _all_well(FileCapacities(arguments.file).capacities(root, receivers))
    size = FlowSize(arguments.bytes, arguments.seconds, arguments.streams)
    with closing(tqdm(unit="step", leave=False, disable=not sys.stderr.isatty(), file=sys.stderr)) as bar:

        def report(step: MeasurementStep) -> None:
            bar.total, bar.n = step.total, step.done
            bar.set_description(step.subject)

        return AgentCapacities(arguments.hosts, dialer(agent_credentials(arguments)), size, report).measure(
            root, receivers
        )


def _all_well(capacities: Capacities) -> AgentFindings:
    return AgentFindings(capacities)


def _report_faults(found: AgentFindings) -> None:
    for name, reason in found.away.items():
        sys.stderr.write(f"blast: {name} does not answer: {reason}\n")
    dead: dict[Pair, str] = {link: reason for link, reason in found.dead.items() if not found.away.keys() & set(link)}
    for (start, end), reason in list(dead.items())[:_MAX_LISTED]:
        sys.stderr.write(f"blast: no data gets from {start} to {end}: {reason}\n")
    if len(dead) > _MAX_LISTED:
        sys.stderr.write(f"blast: … and {len(dead) - _MAX_LISTED} more links are dead\n")
    for name, reason in found.alone.items():
        sys.stderr.write(f"blast: the access link of {name} has only the rate of its fastest path: {reason}\n")
    others = [name for name in found.capacities.hosts if name != found.capacities.root]
    lost = [name for name in others if name not in found.capacities.receivers]
    if lost and (found.away or found.dead):
        sys.stderr.write(f"blast: removed from the receivers, since no data reaches them: {', '.join(lost)}\n")


def _give(arguments: argparse.Namespace, found: AgentFindings) -> int:
    written = json.dumps(found.capacities.to_json()) + "\n"
    sys.stdout.write(written if arguments.json else capacities_table(found.capacities) + "\n")
    if arguments.output is not None:
        try:
            _write(arguments.output, written)
        except OSError as error:
            return _fail(FAILED, f"cannot write {arguments.output}: {error.strerror}")
    return DONE if found.whole else PARTLY


def _write(path: Path, text: str) -> None:
    """Replace a file atomically, or write to a pipe or device. Raises OSError."""
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
    """Raise InvalidArgumentError, before the measurement, if a file cannot be written."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidArgumentError(f"cannot write {path}: choose a file in an existing directory")


def _fail(status: int, sentence: str) -> int:
    sys.stderr.write(f"blast: {sentence}\n")
    return status
