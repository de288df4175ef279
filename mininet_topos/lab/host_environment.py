"""The environment of lab hosts, which makes `blast send` at a host work without options for addresses.

Each host has an agent; the other hosts' names; the controller, on the host's own loopback (relay.py); and in the host's
shell the variables that `blast` reads. Received files are kept in memory, in a folder with the host's name.
"""

from __future__ import annotations

import os
import shlex
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mininet_topos.kernel.netdev import query
from mininet_topos.lab import registry
from mininet_topos.lab.agents import AgentPlaces, Agents, write_new_secret
from mininet_topos.lab.lab import Lab
from mininet_topos.lab.relay import addresses_of, relay
from mininet_topos.topology.plan import LabPlan

FOLDER = "incoming"
"""The folder's name for senders."""
_HOSTS_FILE = "/etc/hosts"


@contextmanager
def equipped(lab: Lab) -> Iterator[Agents]:
    """Equip all hosts while the `with` block runs. Raises `ProcessError`, `HostError`."""
    memory = registry.memory(lab.id)
    memory.mkdir(mode=0o700)
    secret = write_new_secret(_secret_of(lab))
    hosts = hosts_of(lab.plan)
    name_hosts(lab)
    with ExitStack() as stack:
        if lab.controller_pid is not None:
            stack.enter_context(relay(lab, list(hosts)))
        for host in hosts:
            _export(lab, host)
        places = AgentPlaces(FOLDER, memory, lab.directory, secret, durable=False)
        yield stack.enter_context(Agents(lab, list(hosts), places))


def name_hosts(lab: Lab) -> None:
    """Let every host know the others by name, as a room's own name service would. Raises `HostError`."""
    file = lab.directory / "hosts"
    file.write_text(hosts_file(Path(_HOSTS_FILE).read_text(), hosts_of(lab.plan)))
    for host in hosts_of(lab.plan):
        # A host has a mount namespace of its own, and this goes with it.
        query(["mount", "--bind", str(file), _HOSTS_FILE], namespace_pid=lab.pid(host))


def hosts_of(plan: LabPlan) -> dict[str, str]:
    """Return the address of each host."""
    return {host.name: host.ip for rack in plan.rack_plans for host in rack.hosts}


def hosts_file(of_machine: str, hosts: Mapping[str, str]) -> str:
    """Return the text of a hosts file (hosts(5)): that of the machine, and the hosts of the lab."""
    return of_machine.rstrip("\n") + "\n" + "".join(f"{address}\t{name}\n" for name, address in hosts.items())


def environment(host: str, controllers: str, secret: Path, received: Path) -> dict[str, str]:
    """Return the environment of `blast` and `blast_client` at a host.

    `controllers` are the addresses of the controllers, empty if there is none. `received` is the folder of the lab's
    agents, with a folder for each host.
    """
    scripts = sysconfig.get_path("scripts")
    return {
        "BLAST_HOST": host,
        "BLAST_CONTROLLER": controllers,
        "BLAST_SECRET_FILE": str(secret),
        "BLAST_FOLDER": str(received / host),
        "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
    }


def shell_of(lab: Lab, host: str) -> dict[str, str]:
    """Return the variables of a host's shell, for processes that are started there in other ways."""
    controllers = addresses_of(lab) if lab.controller_pid is not None else ""
    return environment(host, controllers, _secret_of(lab), registry.memory(lab.id))


def _secret_of(lab: Lab) -> Path:
    return lab.directory / "agents.secret"


def _export(lab: Lab, host: str) -> None:
    """Export the host's variables in the shell that runs the commands typed for it."""
    values = shell_of(lab, host)
    lab.host(host).cmd("export " + " ".join(f"{name}={shlex.quote(value)}" for name, value in values.items()))
