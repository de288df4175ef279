"""`blast plan`: its input, execution and output."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from blast_sim.allocation.allocate import ONE_SHOT, AllocationMethod, AllocationPlan, plan
from blast_sim.allocation.instance import Instance
from blast_sim.allocation.instance_file import parse_instance
from blast_sim.base.provenance import Origin, Recording, describe_input, with_provenance
from blast_sim.base.text import table
from blast_sim.base.wrong_input import InputError
from blast_sim.plugins.loading import blamed, is_plugin, plugins_of

STANDARD_INPUT = "-"
OPTIONS = ("policy", "optimize", "exact", "time_limit")
"""Options that affect the result."""

ALL_DIGITS = ".12g"
"""Weights in bytes differ in late digits, and a bound that prints like the weight would contradict a gap."""


def run(arguments: argparse.Namespace) -> None:
    """Allocate the instance and print the result. Raises InputError, OSError, SolverError, PluginFailedError."""
    recording = Recording()
    data = sys.stdin.buffer.read() if arguments.file == STANDARD_INPUT else Path(arguments.file).read_bytes()
    instance = parse_instance(data)
    if arguments.policy not in ONE_SHOT and not is_plugin("policy", arguments.policy):
        raise InputError(
            f"--policy {arguments.policy!r} does not apply to a single decision: use {', '.join(ONE_SHOT)}, or a "
            "plug-in as module:Class"
        )
    milliseconds = arguments.optimize
    method = AllocationMethod(
        arguments.policy,
        None if milliseconds is None else milliseconds / 1e3,
        arguments.time_limit if arguments.exact else None,
    )
    with blamed(plugins_of(arguments.policy)):
        found = plan(instance, method)
    if arguments.json:
        options = {option: getattr(arguments, option) for option in OPTIONS}
        request = {"instance": describe_input(arguments.file, data), **options}
        origin = Origin("plan", request, plugins=plugins_of(arguments.policy))
        text = json.dumps(with_provenance(recording.provenance(origin), as_json(found)), indent=2)
    else:
        text = as_text(instance, found)
    sys.stdout.write(text + "\n")


def as_json(found: AllocationPlan) -> dict[str, object]:
    """Return the result as a JSON object."""
    return {
        "selected": [
            {"id": name, "splitters": {str(fan_out): count for fan_out, count in sorted(Counter(pieces).items())}}
            for name, pieces in found.selected
        ],
        "refused": [{"id": refusal.name, "reason": refusal.reason} for refusal in found.refused],
        "weight": found.allocation.value,
        "bound": found.allocation.bound,
        "gap": found.allocation.gap,
        "optimal": found.allocation.certified,
        "seconds": found.seconds,
    }


def as_text(instance: Instance, found: AllocationPlan) -> str:
    """Return the result as a table with a summary."""
    requests = {request.name: request for request in instance.requests}
    rows = [
        [name, f"{requests[name].weight:g}", str(len(requests[name].racks)), _splitters(pieces)]
        for name, pieces in found.selected
    ]
    rows += [
        [refusal.name, f"{requests[refusal.name].weight:g}", str(len(requests[refusal.name].racks)), refusal.reason]
        for refusal in found.refused
    ]
    return f"{table(['REQUEST', 'WEIGHT', 'RACKS', 'RESULT'], rows)}\n\n{_summary(found)}"


def _splitters(pieces: tuple[int, ...]) -> str:
    counts = sorted(Counter(pieces).items(), reverse=True)
    return "served: " + (", ".join(f"{count} x 1:{fan_out}" for fan_out, count in counts) or "a plain cross-connect")


def _summary(found: AllocationPlan) -> str:
    requests, allocation = len(found.selected) + len(found.refused), found.allocation
    served = f"{len(found.selected)} of {requests} served, weight {allocation.value:{ALL_DIGITS}}"
    if allocation.certified:
        judged = "proven optimal"
    elif allocation.bound is None or allocation.gap is None:
        judged = "no bound found"
    else:
        judged = f"no allocation exceeds {allocation.bound:{ALL_DIGITS}} (gap {100 * allocation.gap:.3g} %)"
    return f"{served}, {judged}; decided in {found.seconds * 1e3:.3g} ms"
