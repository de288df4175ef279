"""The command `blast lab up|list|down|demo|replay|spark|sites`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace

from blast_base.command_line import DONE, FAILED, PARTLY, WRONG_INPUT
from mininet_topos.demo.command import register as register_demo
from mininet_topos.kernel.errors import LabError, PlanError
from mininet_topos.kernel.netdev import require_root
from mininet_topos.kernel.termination import end_in_order, ending_by_fault, hearing_signals
from mininet_topos.lab.cleanup import Removed, down, found_labs
from mininet_topos.lab.controller_config import INTERACTIVE_LEASE_MS
from mininet_topos.lab.listing import list_labs, register_list
from mininet_topos.lab.registry import labs_built_by
from mininet_topos.replay.options import register as register_replay
from mininet_topos.sites.options import register as register_sites
from mininet_topos.spark.options import register as register_spark
from mininet_topos.topology.plan import PRESETS, LabPlan, parse_splitters, preset
from mininet_topos.topology.switch_kinds import DEFAULT_KIND, KINDS

MAX_CONTROLLERS = 7
"""More standbys would only take memory of this machine."""

_UP_EXAMPLE = """\
example:
  blast lab up --preset small --racks 4 --splitters 4x1,8x1
      four racks of two hosts, a 1:4 and a 1:8 splitter, the controller, and Mininet's prompt
  blast lab up --controllers 3
      three controllers: kill the leader or use `blast step-down`, and a standby takes over
  blast lab up --switch sonic-ocs
      an optical switch with SONiC; at the prompt, `loss s1/9 5` makes a lossy splitter output
  sleep infinity | blast lab up --preset paper-testbed --json
      for scripts: one JSON line when ready; the lab ends at SIGTERM or end of input"""
_DOWN_EXAMPLE = """\
example:
  blast lab down b3f2      remove one lab, even after its owner crashed
  blast lab down           remove every lab on this machine"""
_LAB_EXAMPLE = """\
examples:
  blast lab demo                        run all scenes once, measured and checked
  blast lab up --preset small           an interactive lab
  blast lab replay sample --first 24    a trace, scaled down, with real data
  blast lab spark                       Spark's own examples on a cluster in the racks
  blast lab sites --preset gridlab      sites whose paths differ, an agent in each
  blast lab list                        list the labs
  blast lab down b3f2                   remove a lab"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `lab` and its subcommands; each sets `run`, a function from the parsed options to the exit status."""
    lab = subparsers.add_parser(
        "lab",
        help="Mininet with an emulated optical fabric (root)",
        description="Mininet with an emulated optical fabric; needs root.",
        epilog=_LAB_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = lab.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _register_up(commands)
    register_list(commands).set_defaults(run=guarded(list_labs))
    _register_down(commands)
    register_demo(commands)
    register_replay(commands)
    register_spark(commands)
    register_sites(commands)


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a plan; `plan_from` reads them."""
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small", help="base preset (default: small)")
    parser.add_argument("--racks", type=int, metavar="N", help="number of racks, 2 to 32")
    parser.add_argument("--hosts", type=int, metavar="N", dest="hosts_per_rack", help="hosts per rack")
    parser.add_argument(
        "--optical-ports", type=int, metavar="N", dest="optical_ports_per_rack", help="optical ports per rack, 1 or 2"
    )
    parser.add_argument("--splitters", metavar="WAYSxCOUNT,…", help="splitters, such as 4x2,8x1")
    parser.add_argument(
        "--light-rate", type=float, metavar="MBPS", dest="light_rate_mbps", help="rate of an optical port"
    )
    parser.add_argument(
        "--access-rate", type=float, metavar="MBPS", dest="access_rate_mbps", help="rate of a host's link"
    )
    parser.add_argument(
        "--oversubscription", type=float, metavar="F", help="ratio of the hosts' access rates to the uplink"
    )
    parser.add_argument("--shared-datapath", action="store_true", default=None, help="all racks on one bridge")
    parser.add_argument(
        "--loop-leaf", action="store_true", default=None, help="loop leaf for each sender's own receiver"
    )
    parser.add_argument("--mtu", type=int, metavar="BYTES", help="MTU of every link")


def plan_from(options: argparse.Namespace) -> LabPlan:
    """Return the plan that the options describe. Raises `PlanError`."""
    names = ("racks", "hosts_per_rack", "optical_ports_per_rack", "light_rate_mbps", "access_rate_mbps")
    names += ("oversubscription", "shared_datapath", "loop_leaf", "mtu")  # type: ignore[assignment]
    changes = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.splitters is not None:
        changes["splitters"] = parse_splitters(options.splitters)
    return replace(preset(options.preset), **changes)


def guarded(action: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Wrap `action` to report a lab's errors as one sentence: status 2 for wrong input, 1 for others."""

    def run(options: argparse.Namespace) -> int:
        try:
            return action(options)
        except PlanError as error:
            sys.stderr.write(f"blast lab: {error}\n")
            return WRONG_INPUT
        except BrokenPipeError:
            raise
        except (LabError, OSError) as error:
            sys.stderr.write(f"blast lab: {error}\n")
            return FAILED

    return run


def _register_up(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    up = commands.add_parser(
        "up",
        help="build a lab with a controller and open Mininet's prompt",
        epilog=_UP_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_plan_options(up)
    up.add_argument(
        "--switch",
        choices=KINDS,
        default=DEFAULT_KIND,
        help=f"kind of optical switch: {', '.join(KINDS)} (default: {DEFAULT_KIND})",
    )
    up.add_argument(
        "--controllers",
        type=_controllers,
        default=1,
        metavar="N",
        help="number of controllers; more than 1 share a journal in etcd (default: 1)",
    )
    up.add_argument("--no-controller", action="store_true", help="no controller; ToRs keep connecting to its address")
    up.add_argument("--no-agents", dest="agents", action="store_false", help="no agents; hosts receive nothing")
    up.add_argument("--json", action="store_true", help="one JSON line when ready, instead of the prompt")
    up.set_defaults(run=guarded(_up))


def _controllers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_CONTROLLERS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_CONTROLLERS}")
    return int(text)


def _register_down(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    lower = commands.add_parser(
        "down",
        help="remove one or all labs, even after a crash",
        epilog=_DOWN_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = lower.add_mutually_exclusive_group()
    which.add_argument("lab", nargs="?", metavar="ID", help="id of the lab (default: all labs)")
    which.add_argument("--owner", type=int, metavar="PID", help="labs left behind by this process")
    lower.add_argument("--json", action="store_true", help="print the removed labs as JSON")
    lower.set_defaults(run=guarded(_down))


def _up(options: argparse.Namespace) -> int:
    plan = plan_from(options)
    require_root()
    # Mininet is a Debian package: every other command must work without it.
    from mininet_topos.kernel.mininet_import import setLogLevel
    from mininet_topos.lab.host_environment import equipped, name_hosts
    from mininet_topos.lab.lab import Lab, blast_controller
    from mininet_topos.lab.prompt import LabPrompt

    end_in_order(DONE)
    controller = None if options.no_controller else blast_controller
    with ExitStack() as stack:
        lab = stack.enter_context(
            Lab(
                plan,
                controller=controller,
                switch=options.switch,
                controllers=options.controllers,
                min_lease_ms=INTERACTIVE_LEASE_MS,
                knows_losses=True,
            )
        )
        lab.watch(ending_by_fault(FAILED))
        agents = stack.enter_context(equipped(lab)) if options.agents else None
        if agents is None:
            name_hosts(lab)
        described = {**lab.describe(), "received": str(agents.places.data) if agents else None}
        if options.json:
            sys.stdout.write(json.dumps(described) + "\n")
            sys.stdout.flush()
            _wait_for_end_of_input()
        else:
            sys.stdout.write(_greeting(described, plan))
            sys.stdout.flush()
            # Mininet prints the output of its prompt's commands at a log level.
            setLogLevel("output")
            with hearing_signals():
                LabPrompt(lab, agents)
    return DONE


def _wait_for_end_of_input() -> None:
    while os.read(sys.stdin.fileno(), 65536):
        pass


def _greeting(lab: dict[str, object], plan: LabPlan) -> str:
    serves = f"controller at {lab['thrift']}" if lab["thrift"] else f"no controller; ToRs connect to {lab['openflow']}"
    return (
        f"lab {lab['lab']}: {plan.summary}\n"
        f"{serves}, configuration {lab['config']}\n"
        f"optical switch {lab['switch']}: {KINDS[str(lab['switch'])].protocol} at {lab['switch_address']}\n"
        f"{_where_to_look(lab)}"
        f"{_how_to_send(lab)}"
        "`help` lists commands, such as cut, deny and reboot\n"
        f"leave with `exit`; after a crash: blast lab down {lab['lab']}\n"
    )


def _where_to_look(lab: dict[str, object]) -> str:
    return "" if lab["page"] is None else f"live page at {lab['page']}\n"


def _how_to_send(lab: dict[str, object]) -> str:
    if lab["received"] is None:
        return ""
    return (
        f"each host runs an agent, which stores received files in {lab['received']}/HOST; try:\n"
        "    r1h1 blast send FILE --to r2h1,r3h1\n"
    )


def _down(options: argparse.Namespace) -> int:
    require_root()
    removed = [down(lab) for lab in _labs_to_remove(options)]
    if options.json:
        sys.stdout.write(json.dumps({"removed": [asdict(lab) for lab in removed]}) + "\n")
    else:
        sys.stdout.writelines(f"{_summary(lab)}\n" for lab in removed)
    if not removed and not options.json:
        whose = "on this machine" if options.owner is None else f"of process {options.owner}"
        sys.stdout.write(f"no lab found {whose}\n")
    return PARTLY if any(lab.bridges is None for lab in removed) else DONE


def _summary(lab: Removed) -> str:
    bridges = "no bridges (Open vSwitch is not running)" if lab.bridges is None else f"{lab.bridges} bridges"
    again = (
        f"; to remove them, start Open vSwitch and run `blast lab down {lab.lab}` again" if lab.bridges is None else ""
    )
    return f"lab {lab.lab} removed: {lab.processes} processes, {bridges}, {lab.links} interfaces{again}"


def _labs_to_remove(options: argparse.Namespace) -> list[str]:
    """Return the ids of the labs to remove. Raises `PlanError` for an unknown lab."""
    if options.owner is not None:
        return labs_built_by(options.owner)
    known = found_labs()
    if options.lab is not None and options.lab not in known:
        raise PlanError(f"there is no lab {options.lab!r}; this machine has {', '.join(known) or 'none'}")
    return [options.lab] if options.lab else known
