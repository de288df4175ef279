"""The lab's prompt: Mininet's, with commands to inject and clear faults, and hosts that are called by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from blast_client.api.nearest import did_you_mean
from mininet_topos.kernel.controller_namespace import Side
from mininet_topos.kernel.errors import LabError, PlanError
from mininet_topos.kernel.mininet_import import CLI
from mininet_topos.lab.agents import Agents
from mininet_topos.lab.fault_commands import (
    CONTROLLER,
    is_partition,
    read_decibels,
    read_denied,
    read_fiber,
    read_partition,
    read_rebooted,
    read_seconds,
    read_switch,
)
from mininet_topos.lab.lab import Lab
from mininet_topos.topology.build import tor_name
from mininet_topos.topology.plan import OPTICAL_SWITCH

Command = Callable[["LabPrompt", list[str]], str]


def _named(sides: list[Side]) -> str:
    """Return the cut sides in words."""
    return " and ".join(side.value for side in sides)


def _prints_result(act: Command) -> Callable[[LabPrompt, str], None]:
    """Wrap a prompt command: pass it the words of the line, and print its result or error as one sentence."""

    @wraps(act)
    def run(prompt: LabPrompt, line: str) -> None:
        try:
            result = act(prompt, line.split())
        except LabError as error:
            result = str(error)
        sys.stdout.write(f"{result}\n")
        sys.stdout.flush()

    return run


class LabPrompt(CLI):  # type: ignore[misc]
    """A prompt that reads commands until its user leaves.

    `agents` are those of the hosts, None without; `stdin` and `script` are Mininet's.
    """

    def __init__(self, lab: Lab, agents: Agents | None, **read_from: Any) -> None:
        self._lab, self._agents = lab, agents
        super().__init__(lab.net, **read_from)

    @_prints_result
    def do_cut(self, words: list[str]) -> str:
        """Cut a fiber: cut r3 rx, cut s1, cut s1/10 (an output); or a partition: cut controller2 etcd."""
        if is_partition(words):
            number, sides = read_partition(words)
            self._lab.controller_namespace(number).cut(sides)
            return f"controller {number} is cut off from {_named(sides)}; undo with: mend {' '.join(words)}"
        element = read_fiber(self._lab.plan, words)
        self._lab.faults.break_fiber(element)
        return f"{element} is cut; undo with: mend {' '.join(words)}"

    @_prints_result
    def do_mend(self, words: list[str]) -> str:
        """Restore a fiber: mend r3 rx; or end a partition: mend controller2."""
        if is_partition(words):
            number, sides = read_partition(words)
            self._lab.controller_namespace(number).mend(sides)
            return f"controller {number} is connected to {_named(sides)} again"
        element = read_fiber(self._lab.plan, words)
        self._lab.faults.mend_fiber(element)
        self._lab.faults.dim_fiber(element, 0)
        self._lab.faults.raise_loss(element, 0)
        return f"{element} is restored"

    @_prints_result
    def do_dim(self, words: list[str]) -> str:
        """Add loss to a fiber in dB: dim r3 rx 5."""
        decibels = read_decibels(words)
        element = read_fiber(self._lab.plan, words[:-1])
        self._lab.faults.dim_fiber(element, decibels)
        return f"{element} has {decibels:g} dB of additional loss"

    @_prints_result
    def do_loss(self, words: list[str]) -> str:
        """Raise the loss in the optical switch of the circuits at a fiber, in dB: loss s1/10 5."""
        decibels = read_decibels(words)
        element = read_fiber(self._lab.plan, words[:-1])
        self._lab.faults.raise_loss(element, decibels)
        return f"circuits at {element} have {decibels:g} dB of additional loss"

    @_prints_result
    def do_slow(self, words: list[str]) -> str:
        """Delay the optical switch's mirrors: slow ocs1 2s."""
        seconds = read_seconds(words)
        self._lab.faults.slow_mirrors(seconds)
        return f"every connect takes {seconds:g} s longer"

    @_prints_result
    def do_hold(self, words: list[str]) -> str:
        """Delay the optical switch's answers: hold ocs1 500ms."""
        seconds = read_seconds(words)
        self._lab.faults.hold_answers(seconds)
        return f"every answer is delayed by {seconds:g} s"

    @_prints_result
    def do_deny(self, words: list[str]) -> str:
        """Make the optical switch deny commands: deny ocs1 in 3,4; deny ocs1 out 7; deny ocs1 all; deny ocs1 none."""
        denied = read_denied(self._lab.plan, words)
        self._lab.faults.deny(denied.inputs, denied.outputs, everything=denied.everything)
        return f"{OPTICAL_SWITCH} denies {'nothing' if words[1:] == ['none'] else ' '.join(words[1:])}"

    @_prints_result
    def do_drop(self, words: list[str]) -> str:
        """Reset every session of the optical switch; circuits stay: drop ocs1."""
        read_switch(words)
        self._lab.faults.cut_sessions()
        return f"every session of {OPTICAL_SWITCH} is reset"

    @_prints_result
    def do_reboot(self, words: list[str]) -> str:
        """Restart a component: reboot r2 (its ToR), r2h1 (its agent), ocs1 (all ports go dark) or controller."""
        name = read_rebooted(self._lab.plan, words)
        racks = {rack.name: rack for rack in self._lab.plan.rack_plans}
        if name in racks:
            tor = tor_name(racks[name].datapath)
            self._lab.net[tor].reboot(self._lab.net.controllers)
            return f"{name}'s ToR {tor} was restarted without rules and reconnects to the controller"
        if name == OPTICAL_SWITCH:
            self._lab.reboot_optical_switch()
            return f"{name} was restarted; all ports are dark"
        if name == CONTROLLER:
            self._lab.kill_controller()
            self._lab.start_controller()
            return "the controller was killed and restarted; it restores its state from the journal"
        return self._reboot_agent(name)

    def _reboot_agent(self, host: str) -> str:
        if self._agents is None:
            raise PlanError("this lab has no agents: start a lab without --no-agents")
        self._agents.restart(host)
        return f"the agent of {host} was killed and restarted"

    def default(self, line: str) -> None:
        """Run a line at the host that it begins with. Names are not replaced by addresses: hosts resolve them."""
        name, _, rest = line.strip().partition(" ")
        if name not in self.mn:
            known = [word.removeprefix("do_") for word in dir(self) if word.startswith("do_")]
            sys.stdout.write(
                f"unknown command or host {name!r}{did_you_mean(name, [*known, *self.mn])} (`help` lists commands)\n"
            )
        elif not rest:
            sys.stdout.write(
                f"name a command to run on {name}, for example: {name} ping -c1 {self._other_host(name)}\n"
            )
        else:
            node = self.mn[name]
            node.sendCmd(rest)
            self.waitForNode(node)

    def _other_host(self, name: str) -> str:
        hosts = (host.name for rack in self._lab.plan.rack_plans for host in rack.hosts)
        return next(host for host in hosts if host != name)
