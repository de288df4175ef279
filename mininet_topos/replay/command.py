"""`blast lab replay`: scales a trace, plays it in a lab under every requested policy, and prints the results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import NoReturn

from thrift.Thrift import TException
from tqdm import tqdm

from blast_base.command_line import DONE, FAILED, PARTLY, TERMINATED, WRONG_INPUT
from blast_client import Client, ControllerUnreachableError
from blast_client.cli.failures import explain_failure
from blast_sim.base.provenance import Origin, Recording, with_provenance
from blast_sim.base.report import Row, as_table
from blast_sim.replay.command import COLUMNS, draw
from blast_sim.replay.reading import describe_trace, policies_from, workload_from
from blast_sim.replay.result import policy_row, result
from blast_sim.traces.coflow_file import written
from blast_sim.traces.scaling import as_coflows, scaled
from blast_sim.traces.workload import Workload
from blast_transport.base.errors import TransportError
from mininet_topos.demo.latency import KEEP_WARM_MS
from mininet_topos.demo.mix import MixRequest, ServedRequest, serve
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.errors import LabError, PlanError
from mininet_topos.kernel.netdev import require_root
from mininet_topos.kernel.termination import end_in_order
from mininet_topos.replay.translating import failure_of, outcome_of, payload_gbps, requests_of
from mininet_topos.topology.plan import LabPlan, parse_splitters

MADE_BY = "lab"


def run(arguments: argparse.Namespace) -> int:
    """Scale, replay and print; return the exit status. Raises InputError, and OSError for the user's files."""
    recording = Recording()
    policies = policies_from(arguments.policy)
    try:
        plan = _plan(arguments)
    except PlanError as error:
        return _failed(str(error), WRONG_INPUT)
    workload = scaled(workload_from(arguments), plan.racks, arguments.scale or plan.rate_factor, arguments.speed)
    if arguments.write_scaled is not None:
        arguments.write_scaled.write_text(written(as_coflows(workload)))
        sys.stderr.write(_summary(workload, plan))
        return DONE
    if arguments.figure is not None:
        arguments.figure.mkdir(parents=True, exist_ok=True)
    try:
        served = _played(plan, requests_of(workload, plan, arguments.pause, arguments.split), policies)
    except (LabError, TransportError, OSError) as error:
        return _failed(str(error), FAILED)
    except (TException, ControllerUnreachableError) as error:
        return _failed(explain_failure(error)[1], FAILED)
    _print(arguments, plan, workload, served, recording)
    return _status([one for ones in served.values() for one in ones])


def _plan(arguments: argparse.Namespace) -> LabPlan:
    return LabPlan(
        racks=arguments.racks,
        hosts_per_rack=1,
        splitters=parse_splitters(arguments.splitters),
        light_rate_mbps=arguments.light_rate,
        access_rate_mbps=max(LabPlan.access_rate_mbps, arguments.light_rate),
    )


def _played(
    plan: LabPlan, requests: Sequence[MixRequest], policies: Sequence[str]
) -> dict[str, tuple[ServedRequest, ...]]:
    """Return the results of the requests under each policy, each policy in a new lab.

    Raises the exceptions of labs, clients and transfers.
    """
    require_root()
    # Mininet is a Debian package: scaling works without it.
    from mininet_topos.lab.lab import Lab

    end_in_order(TERMINATED)
    served = {}
    total = len(policies) * len(requests)
    with tqdm(total=total, desc="served", disable=not sys.stderr.isatty(), file=sys.stderr, leave=False) as bar:
        for policy in policies:
            with Lab(plan, policy=policy, keep_warm_ms=KEEP_WARM_MS) as lab, Client(lab.thrift) as client:
                stage = Stage(lab, client, Results(plan.summary))
                stage.wait_devices()
                served[policy] = _served(stage, requests, policy, bar)
    return served


def _served(
    stage: Stage, requests: Sequence[MixRequest], policy: str, bar: tqdm[NoReturn]
) -> tuple[ServedRequest, ...]:
    def done(_: ServedRequest) -> None:
        bar.update()

    return serve(stage, requests, policy, done).served


def _print(
    arguments: argparse.Namespace,
    plan: LabPlan,
    workload: Workload,
    served: dict[str, tuple[ServedRequest, ...]],
    recording: Recording,
) -> None:
    rows = [
        policy_row(policy, outcome_of(workload, ones), plan.light_rate_mbps * 1e6) for policy, ones in served.items()
    ]
    request = {"trace": describe_trace(arguments.trace, arguments.format), "policy": arguments.policy}
    provenance = recording.provenance(Origin("lab replay", request, (arguments.seed,)))
    if arguments.figure is not None:
        draw(arguments.figure, rows, provenance)
    if arguments.json:
        network = {**_network(arguments, plan), "intact": sum(one.complete for ones in served.values() for one in ones)}
        answer = result(MADE_BY, arguments.trace, workload.rules, network, rows)
        sys.stdout.write(json.dumps(with_provenance(provenance, answer), indent=1) + "\n")
    else:
        sys.stdout.write(_summary(workload, plan) + "\n")
        sys.stdout.write(as_table([{column: row[column] for column in COLUMNS} for row in rows]))


def _network(arguments: argparse.Namespace, plan: LabPlan) -> Row:
    """Describe the lab under the simulator's keys, together with the whole plan."""
    network = {
        "racks": plan.racks,
        "servers_per_rack": plan.hosts_per_rack,
        "server_gbps": plan.access_rate_mbps / 1000,
        "uplink_gbps": plan.uplink_rate_mbps / 1000,
    }
    light = {
        "rate_gbps": plan.light_rate_mbps / 1000,
        "payload_gbps": payload_gbps(plan),
        "ports_per_rack": plan.optical_ports_per_rack,
        "splitters": sum(plan.splitters.values()),
        "keep_warm_ms": KEEP_WARM_MS,
        "may_pause": arguments.pause,
        "may_split": arguments.split,
    }
    return {"network": network, "light": light, "compute": "measured", "shuffles": False, "lab": asdict(plan)}


def _summary(workload: Workload, plan: LabPlan) -> str:
    rules = workload.rules
    return (
        f"{len(workload.multicasts)} multicasts on {workload.racks} racks, bytes 1:{rules['scale']:g}, "
        f"arrivals {rules['speed']:g} times as fast, {rules['within_a_rack']} within a rack dropped\n{plan.summary}\n"
    )


def _status(served: Sequence[ServedRequest]) -> int:
    broken = [one for one in served if not one.complete]
    if not broken:
        return DONE
    sentences = "; ".join(f"{one.asked.name}: {failure_of(one)}" for one in broken)
    status = PARTLY if len(broken) < len(served) else FAILED
    return _failed(f"not byte-identical at every receiver: {sentences}", status)


def _failed(sentence: str, status: int) -> int:
    sys.stderr.write(f"blast lab replay: {sentence}\n")
    return status
