"""The controller's configuration for a lab, as TOML like that of a real machine room."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from mininet_topos.topology.plan import OPTICAL_SWITCH, LabPlan, RackPlan
from mininet_topos.topology.power import OVERLOAD_DBM, SENSITIVITY_DBM, TRANSMITTED_DBM, splitter_loss
from mininet_topos.topology.switch_kinds import DEFAULT_KIND, KINDS, SwitchKind
from optical_switch.emulator.hardware import PASS_LOSS_DB


@dataclass(frozen=True)
class Endpoints:
    """Where things listen, each `address:port`; `http`, if anything, serves the live page."""

    thrift: str
    openflow: str
    optical_switch: str
    http: str | None = None


@dataclass(frozen=True)
class Service:
    """Settings of the lab's controller; None stands for the controller's own default.

    `journal` is the journal's file (None: in memory), `etcd` the endpoint of an etcd that holds the journal instead.
    `min_lease_ms` is the shortest lease, `light_check` when received power is checked, `keep_warm_ms` how long a
    released light tree stays lit (0: tests wait for it to be torn down), `policy` the scheduling policy, and
    `reconcile_interval_ms` the interval at which devices are compared with the journal. With `knows_losses` the
    configuration contains the insertion losses of this lab, for a power budget. `switch` is the kind of the optical
    switch, and `switch_folder` the folder of its files.
    """

    journal: Path | None = None
    min_lease_ms: int | None = None
    light_check: str = "off"
    keep_warm_ms: int = 0
    policy: str | None = None
    knows_losses: bool = False
    reconcile_interval_ms: int | None = None
    etcd: str | None = None
    switch: SwitchKind = KINDS[DEFAULT_KIND]
    switch_folder: Path = Path()


class ServiceOptions(TypedDict, total=False):
    """The fields of `Service` that the builder of a lab may set."""

    min_lease_ms: int | None
    light_check: str
    keep_warm_ms: int
    policy: str | None
    knows_losses: bool
    reconcile_interval_ms: int | None


NOTHING_SPECIAL = Service()

INTERACTIVE_LEASE_MS = 60_000
"""The shortest lease in interactive labs: long enough to read the grant and to send."""


def render(plan: LabPlan, endpoints: Endpoints, service: Service = NOTHING_SPECIAL) -> str:
    """Return the text of the controller's configuration file."""
    parts = (_settings(plan, endpoints, service), _racks(plan), _splitters(plan, service), _static_trees(plan))
    return "\n".join(line for part in parts for line in part) + "\n"


def _settings(plan: LabPlan, endpoints: Endpoints, service: Service) -> Iterator[str]:
    yield f"# {plan.summary}"
    lease = {} if service.min_lease_ms is None else {"min_lease_ms": service.min_lease_ms}
    listens = {"thrift": json.dumps(endpoints.thrift), "openflow": json.dumps(endpoints.openflow)}
    if endpoints.http is not None:
        listens["http"] = json.dumps(endpoints.http)
    yield from _table("[controller]", **listens, **lease, keep_warm_ms=service.keep_warm_ms)
    yield from _journal(service)
    if service.policy is not None:
        yield from _table("[policy]", name=json.dumps(service.policy))
    yield from _table(
        "[openflow]",
        group_network='"239.77.0.0/16"',
        group_port=5001,
        dscp=46,
        priority=40000,
        guard_priority=30000,
        step_timeout_ms=2000,
    )
    loop_leaf = {"loop_leaf": "true"} if plan.loop_leaf else {}
    transceivers = {"launch_dbm": TRANSMITTED_DBM, "sensitivity_dbm": SENSITIVITY_DBM, "overload_dbm": OVERLOAD_DBM}
    known = transceivers if service.knows_losses else {}
    yield from _table("[fabric]", optical_rate_gbps=plan.light_rate_mbps / 1000, **loop_leaf, **known)
    yield from _table(
        "[[optical_switch]]",
        name=json.dumps(OPTICAL_SWITCH),
        driver=json.dumps(service.switch.name),
        address=json.dumps(endpoints.optical_switch),
        inputs=plan.ocs_ports,
        outputs=plan.ocs_ports,
        light_check=json.dumps(service.light_check),
        **service.switch.keys(service.switch_folder),
        **({"pass_loss_db": PASS_LOSS_DB} if service.knows_losses else {}),
    )


def _journal(service: Service) -> Iterator[str]:
    every = {} if service.reconcile_interval_ms is None else {"reconcile_interval_ms": service.reconcile_interval_ms}
    if service.etcd is not None:
        yield from _table("[journal]", **every)
        yield from _table("[journal.etcd]", endpoints=json.dumps([service.etcd]))
    elif service.journal is not None:
        yield from _table("[journal]", file=json.dumps(str(service.journal)), **every)
        yield from _table("[recording]", file=json.dumps(str(service.journal.with_name("recording.sqlite"))))
    else:
        yield from _table("[journal]", in_memory="true", **every)


def _racks(plan: LabPlan) -> Iterator[str]:
    senders = {tree.root.name: tree.root.light_ip for tree in plan.static_tree_plans}
    for rack in plan.rack_plans:
        yield from _table(
            "[[rack]]",
            name=json.dumps(rack.name),
            datapath=f'"{rack.datapath:016x}"',
            optical_ports=_optical_ports(rack),
            hosts=_hosts(rack, senders),
        )


def _splitters(plan: LabPlan, service: Service) -> Iterator[str]:
    for splitter in plan.splitter_plans:
        yield from _table(
            "[[splitter]]",
            name=json.dumps(splitter.name),
            optical_switch=json.dumps(OPTICAL_SWITCH),
            input=splitter.input,
            outputs=list(splitter.outputs),
            **({"insertion_loss_db": splitter_loss(splitter.fan_out)} if service.knows_losses else {}),
        )


def _static_trees(plan: LabPlan) -> Iterator[str]:
    for tree in plan.static_tree_plans:
        root, *leaves = (
            f'{{ host = "{end.name}" }}'
            if end.host is not None
            else f'{{ rack = "{end.name}", port = {plan.rack_plans[end.rack - 1].base + tree.port} }}'
            for end in tree.ends
        )
        yield from _table("[[static_tree]]", name=json.dumps(tree.name), root=root, leaves=f"[{', '.join(leaves)}]")


def _optical_ports(rack: RackPlan) -> str:
    ports = (
        f'{{ port = {p.port}, optical_switch = "{OPTICAL_SWITCH}", input = {p.ocs}, output = {p.ocs} }}'
        for p in rack.optical_ports
    )
    return f"[{', '.join(ports)}]"


def _hosts(rack: RackPlan, senders: Mapping[str, str]) -> str:
    """Return the hosts with the addresses from which they send to groups.

    `senders` has the addresses of the hosts at the roots of static trees.
    """
    hosts = (f'    {{ name = "{h.name}", port = {h.port}, ip = "{senders.get(h.name, h.ip)}" }},' for h in rack.hosts)
    return "\n".join(("[", *hosts, "]"))


def _table(header: str, **values: object) -> Iterator[str]:
    yield ""
    yield header
    yield from (f"{key} = {value}" for key, value in values.items())
