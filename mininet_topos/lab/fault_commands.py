"""Parsing of the prompt's fault commands: checked against the plan before any change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blast_client.api.nearest import did_you_mean
from blast_client.cli.units import parse_seconds
from mininet_topos.kernel.controller_namespace import Side
from mininet_topos.kernel.errors import PlanError
from mininet_topos.topology.plan import OPTICAL_SWITCH, LabPlan

RECEIVE = "rx"
CONTROLLER = "controller"
_NEEDED = "name a fiber: a rack and rx (r3 rx), a splitter (s1), or a splitter output (s1/10)"
_PORTS = "name the connects to deny: all, none, inputs (in 3,4) or outputs (out 3,4)"


@dataclass(frozen=True, slots=True)
class DeniedFault:
    """The connects that the optical switch denies: from these inputs, to these outputs, or `everything`."""

    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    everything: bool = False


def read_fiber(plan: LabPlan, words: Sequence[str]) -> str:
    """Return the element whose fiber is named, as `faults.fiber` expects it.

    Raises PlanError.
    """
    racks = {rack.name: rack for rack in plan.rack_plans}
    splitters = {splitter.name: splitter for splitter in plan.splitter_plans}
    match list(words):
        case [name, side] if name in racks and side.startswith(RECEIVE):
            ports = racks[name].optical_ports
            number = side.removeprefix(RECEIVE) or "1"
            if not number.isdecimal() or not 1 <= int(number) <= len(ports):
                raise PlanError(f"{name} has {len(ports)} optical port(s): {RECEIVE}, or {RECEIVE}2 for the second")
            return f"port:{name}/{ports[int(number) - 1].port}"
        case [name] if name in splitters:
            return f"splitter:{name}"
        case [name] if name.partition("/")[0] in splitters:
            splitter, _, output = name.partition("/")
            outputs = [str(one) for one in splitters[splitter].outputs]
            if output not in outputs:
                raise PlanError(f"{splitter} has no output {output!r}: it has {', '.join(outputs)}")
            return f"output:{name}"
        case [name, *_] if name not in racks and name not in splitters:
            raise PlanError(f"there is no {name!r}{did_you_mean(name, [*racks, *splitters])}; {_NEEDED}")
    raise PlanError(_NEEDED)


def is_partition(words: Sequence[str]) -> bool:
    """Return whether the words name a controller partition, not a fiber."""
    return bool(words) and words[0].removeprefix(CONTROLLER).isdecimal() and words[0].startswith(CONTROLLER)


def read_partition(words: Sequence[str]) -> tuple[int, list[Side]]:
    """Parse `controller2 etcd` into a controller and the cut sides (default: all). Raises PlanError."""
    sides = {side.value: side for side in Side}
    for word in words[1:]:
        if word not in sides:
            raise PlanError(
                f"cannot cut a controller off from {word!r}: use {', '.join(sides)}, or none of them for all"
            )
    return int(words[0].removeprefix(CONTROLLER)), [sides[word] for word in words[1:]] or list(Side)


def read_seconds(words: Sequence[str]) -> float:
    """Parse `ocs1 2s`. Raises PlanError."""
    rest = read_switch(words)
    if len(rest) != 1:
        raise PlanError(f"name a delay: {OPTICAL_SWITCH} 2s, or {OPTICAL_SWITCH} 0 to reset it")
    try:
        return parse_seconds(rest[0])
    except ValueError as error:
        raise PlanError(str(error)) from error


def read_decibels(words: Sequence[str]) -> float:
    """Parse the decibels of the last word. Raises PlanError."""
    try:
        return float(words[-1].removesuffix("dB"))
    except (ValueError, IndexError) as error:
        raise PlanError("name the loss in dB as the last word: r3 rx 5, or r3 rx 0 to reset it") from error


def read_denied(plan: LabPlan, words: Sequence[str]) -> DeniedFault:
    """Parse `ocs1 all`, `ocs1 none`, `ocs1 in 3,4` or `ocs1 out 3`. Raises PlanError."""
    match read_switch(words):
        case ["all"]:
            return DeniedFault(everything=True)
        case ["none"]:
            return DeniedFault()
        case ["in", numbers]:
            return DeniedFault(inputs=_ports(plan, numbers))
        case ["out", numbers]:
            return DeniedFault(outputs=_ports(plan, numbers))
    raise PlanError(_PORTS)


def read_rebooted(plan: LabPlan, words: Sequence[str]) -> str:
    """Parse a rack (its ToR), a host (its agent), the optical switch or the controller. Raises PlanError."""
    hosts = [host.name for rack in plan.rack_plans for host in rack.hosts]
    known = [*(rack.name for rack in plan.rack_plans), *hosts, OPTICAL_SWITCH, CONTROLLER]
    name = words[0] if len(words) == 1 else ""
    if name not in known:
        raise PlanError(
            f"there is no {name!r}{did_you_mean(name, known)}"
            if name
            else f"name a rack (its ToR), a host (its agent), {OPTICAL_SWITCH} or the {CONTROLLER}"
        )
    return name


def read_switch(words: Sequence[str]) -> Sequence[str]:
    """Return the words after the name of the optical switch. Raises PlanError."""
    if not words or words[0] != OPTICAL_SWITCH:
        raise PlanError(f"name the optical switch: {OPTICAL_SWITCH}")
    return words[1:]


def _ports(plan: LabPlan, text: str) -> tuple[int, ...]:
    numbers = text.split(",")
    if not all(n.isascii() and n.isdecimal() and 1 <= int(n) <= plan.ocs_ports for n in numbers):
        raise PlanError(f"{text!r} is not a list of ports of {OPTICAL_SWITCH}: use 1 to {plan.ocs_ports}")
    return tuple(map(int, numbers))
