"""`blast lab sites`: its input, execution and output."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from blast_base.command_line import DONE, FAILED
from blast_sim.base.wrong_input import InputError
from blast_sim.trees.network_file import read_network
from mininet_topos.kernel.errors import LabError, PlanError
from mininet_topos.kernel.netdev import require_root
from mininet_topos.kernel.termination import end_in_order
from mininet_topos.lab import registry
from mininet_topos.lab.agents import BLAST, PORT, Agents
from mininet_topos.sites import presets
from mininet_topos.sites.agents import FOLDER, agents_on
from mininet_topos.sites.plan import SitesPlan, as_network_file, from_network
from mininet_topos.sites.sites import Sites


@dataclass(frozen=True)
class RequestedSites:
    """The sites to build, the network file for `blast trees`, and the host that has the data."""

    plan: SitesPlan
    network: dict[str, object]
    root: str


class _SiteEntry(TypedDict):
    name: str
    address: str
    pid: int
    agent: str | None
    folder: str | None


class _Described(TypedDict):
    """The printed and stored description of the sites; without agents there is no `send` command."""

    lab: str
    summary: str
    root: str
    network: str
    hosts: list[_SiteEntry]
    send: str | None


def run(arguments: argparse.Namespace, unit: float) -> int:
    """Build, print, and wait for the end; return the exit status. `unit` is that of the file's rates, in bit/s.

    Raises InputError, OSError.
    """
    try:
        asked = asked_for(arguments, unit)
    except PlanError as error:
        raise InputError(str(error)) from None
    if arguments.show:
        sys.stdout.write(json.dumps(asked.network, indent=2) + "\n")
        return DONE
    try:
        return _up(asked, arguments)
    except BrokenPipeError:
        raise
    except (LabError, OSError) as error:
        sys.stderr.write(f"blast lab: {error}\n")
        return FAILED


def asked_for(arguments: argparse.Namespace, unit: float) -> RequestedSites:
    """Return the sites that the options describe. Raises InputError, PlanError, OSError."""
    if (arguments.file is None) == (arguments.preset is None):
        raise InputError("give either a network file or --preset, as in `blast lab sites --preset gridlab`")
    if arguments.file is not None:
        network = read_network(arguments.file)
        plan, root = from_network(network, unit), network.hosts[network.root]
        described = as_network_file(plan, root, [network.hosts[place] for place in network.receivers])
    else:
        plan = _preset(arguments)
        root = plan.hosts[0]
        described = as_network_file(plan, root)
    if arguments.preset == "clusters":
        described = presets.clusters_file(arguments.clusters, arguments.nodes)
    if arguments.one_way is not None:
        plan = presets.far(plan, arguments.one_way)
    return RequestedSites(plan, described, root)


def _preset(arguments: argparse.Namespace) -> SitesPlan:
    match arguments.preset:
        case "figure2":
            return presets.figure2()
        case "gridlab":
            return presets.gridlab()
        case "homogeneous":
            return presets.homogeneous(arguments.hosts, arguments.rate)
        case _:
            return presets.clusters(arguments.clusters, arguments.nodes)


def _up(asked: RequestedSites, arguments: argparse.Namespace) -> int:
    require_root()
    end_in_order(DONE, signal.SIGINT)
    with ExitStack() as stack:
        sites = stack.enter_context(Sites(asked.plan))
        network = sites.directory / "network.json"
        network.write_text(json.dumps(asked.network, indent=2) + "\n")
        agents = None
        if not arguments.no_agents:
            sys.stderr.write(f"blast lab: starting agents on {len(sites.hosts)} hosts\n")
            agents = stack.enter_context(agents_on(sites))
        described = _described(sites, asked, network, agents)
        registry.write_state(sites.id, described)
        sys.stdout.write(json.dumps(described) + "\n" if arguments.json else _greeting(described))
        sys.stdout.flush()
        _await_end(arguments.json)
    return DONE


def _described(sites: Sites, asked: RequestedSites, network: Path, agents: Agents | None) -> _Described:
    hosts: list[_SiteEntry] = [
        {
            "name": host,
            "address": sites.address(host),
            "pid": sites.pid(host),
            "agent": agents.address(host) if agents else None,
            "folder": str(agents.folder(host)) if agents else None,
        }
        for host in sites.hosts
    ]
    return {
        "lab": sites.id,
        "summary": f"{len(hosts)} sites, {asked.root} sends",
        "root": asked.root,
        "network": str(network),
        "hosts": hosts,
        "send": shlex.join(sites.on(asked.root, _send(sites, asked.root, agents))) if agents else None,
    }


def _send(sites: Sites, root: str, agents: Agents) -> list[str]:
    others = ",".join(f"{host}={sites.address(host)}:{PORT}" for host in sites.hosts if host != root)
    words = [BLAST, "send", "FILE", "--to", others, "--via", "pipeline", "--folder", FOLDER]
    return [*words, "--secret-file", str(agents.places.secret)]


def _greeting(described: _Described) -> str:
    lines = [f"sites {described['lab']}, {len(described['hosts'])} hosts", f"plan: blast trees {described['network']}"]
    lines += [f"  {host['name']:<14}{host['address']:<14}mnexec -a {host['pid']} bash" for host in described["hosts"]]
    if described["send"]:
        lines.append(f"send from {described['root']}:\n  {described['send']}")
    return "\n".join([*lines, f"leave with Ctrl-C; after a crash: blast lab down {described['lab']}", ""])


def _await_end(until_input_ends: bool) -> None:
    if until_input_ends:
        while os.read(sys.stdin.fileno(), 65536):
            pass
    else:
        while True:
            signal.pause()
