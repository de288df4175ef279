"""`blast drain|resume|step-down|reconcile|element|quarantine|release`: commands of operators."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import wraps

from blast_api.ttypes import Unsupported
from blast_base.command_line import DONE, FAILED, checked
from blast_client.api.client import Client
from blast_client.cli.failures import explain_failure, report_failures
from blast_client.cli.interrupts import report_interrupt
from blast_client.cli.json_form import to_json
from blast_client.cli.operator_views import (
    describe_drain,
    describe_fibers,
    describe_reconcile,
    element_table,
    fibers_status,
    reconcile_status,
)
from blast_client.cli.options import add_command, connect
from blast_client.cli.units import parse_seconds

_READING_DEVICES = 60.0
_PROBING_FIBERS = 600.0
_STATES = ("free", "reserved", "unusable", "disconnected")
_LISTED = "the outcome is unknown, `blast element list` shows it"
_SWITCH = {"on": True, "off": False, "status": None}
"""Argument of `Client.drain` by that of `blast drain`."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add these commands to `blast`."""
    drain = add_command(subparsers, "drain", "accept no new requests, let active ones end", "blast drain on")
    drain.add_argument("state", choices=list(_SWITCH), help="start draining, stop it, or print the state")
    drain.set_defaults(run=_drain)
    reconcile = add_command(
        subparsers,
        "reconcile",
        "compare devices with the journal and repair differences",
        "blast reconcile --dry-run",
    )
    reconcile.add_argument("--dry-run", action="store_true", help="print the differences without a repair")
    _add_timeout(reconcile, _READING_DEVICES)
    reconcile.set_defaults(run=_reconcile)
    resume = add_command(subparsers, "resume", "release a controller from safe mode", "blast resume")
    resume.set_defaults(run=_resume)
    step_down = add_command(
        subparsers, "step-down", "hand leadership to a standby; light trees stay lit", "blast step-down"
    )
    step_down.set_defaults(run=_step_down)
    element = subparsers.add_parser(
        "element",
        help="list, quarantine and release hardware",
        description="List, quarantine and release ports, splitters, optical switches and ToRs.",
        epilog="examples:\n  blast element list --state unusable\n"
        "  blast element quarantine splitter:s1 --reason 'dirty connector'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = element.add_subparsers(metavar="COMMAND", required=True)
    listing = add_command(kinds, "list", "list hardware and its state", "blast element list --state disconnected")
    listing.add_argument("--state", choices=_STATES, help="state of the listed elements (default: all)")
    listing.set_defaults(run=_list)
    # Both `blast quarantine` and `blast element quarantine` exist.
    for place, prefix in ((kinds, "blast element"), (subparsers, "blast")):
        _register_quarantine(place, prefix)


def register_verify(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `verify` to the sub-commands of `blast fabric`."""
    verify = add_command(
        kinds, "verify", "compare the fibers with the configuration by probe frames", "blast fabric verify"
    )
    _add_timeout(verify, _PROBING_FIBERS)
    verify.set_defaults(run=_verify)


def _register_quarantine(place: argparse._SubParsersAction[argparse.ArgumentParser], prefix: str) -> None:
    example = f"{prefix} quarantine splitter:s1 --reason 'dirty connector'"
    quarantine = add_command(place, "quarantine", "take an element out of use; grants that use it continue", example)
    quarantine.add_argument("element", metavar="ELEMENT", help="name of the element in `blast element list`")
    quarantine.add_argument("--reason", required=True, help="reason, which listings and errors print")
    quarantine.set_defaults(run=_quarantine)
    release = add_command(place, "release", "return a quarantined element to use", f"{prefix} release splitter:s1")
    release.add_argument("element", metavar="ELEMENT", help="name of the element in `blast element list`")
    release.set_defaults(run=_release)


def _add_timeout(parser: argparse.ArgumentParser, default: float) -> None:
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=checked(parse_seconds),
        default=default,
        help=f"time to wait for the answer (default: {default:g}s)",
    )


# ---------------------------------------------------------------------- commands


def _report_failures(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Report failures as `report_failures` does, but Unsupported as a failure instead of wrong use."""

    @report_failures
    @wraps(run)
    def wrapped(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except Unsupported as error:
            sys.stderr.write(f"blast: {explain_failure(error)[1]}\n")
            return FAILED

    return wrapped


@_report_failures
def _drain(arguments: argparse.Namespace) -> int:
    unknown = "the outcome is unknown, `blast drain status` shows it"
    with connect(arguments) as client, report_interrupt(unknown):
        status = client.drain(_SWITCH[arguments.state])
    return _print(arguments, status, describe_drain(status))


@_report_failures
def _step_down(arguments: argparse.Namespace) -> int:
    unknown = "the outcome is unknown, `blast fabric show` shows the state of this controller"
    with connect(arguments) as client, report_interrupt(unknown):
        client.step_down()
    return _print(arguments, None, "another controller takes over")


@_report_failures
def _resume(arguments: argparse.Namespace) -> int:
    unknown = "the outcome is unknown, `blast fabric show` prints a warning in safe mode"
    with connect(arguments) as client, report_interrupt(unknown):
        client.resume()
        fabric = client.fabric()
    return _print(arguments, fabric, "\n".join([*(fabric.warnings or ()), "the controller has left safe mode"]))


@_report_failures
def _reconcile(arguments: argparse.Namespace) -> int:
    goes_on = "the controller continues the comparison" + (
        "" if arguments.dry_run else " and the repair, `blast journal show` shows the outcome"
    )
    with connect(arguments, arguments.timeout) as client, report_interrupt(goes_on):
        report = client.reconcile(arguments.dry_run)
    _print(arguments, report, describe_reconcile(report))
    return reconcile_status(report)


@_report_failures
def _verify(arguments: argparse.Namespace) -> int:
    goes_on = "the controller continues to probe; run `blast fabric verify` again for the result"
    with connect(arguments, arguments.timeout) as client, report_interrupt(goes_on):
        report = client.verify_fabric()
    _print(arguments, report, describe_fibers(report))
    return fibers_status(report)


@_report_failures
def _list(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        elements = [e for e in client.elements() if arguments.state in (None, e.state)]
    return _print(arguments, elements, element_table(elements))


@_report_failures
def _quarantine(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client, report_interrupt(_LISTED):
        client.quarantine(arguments.element, arguments.reason)
        return _show(arguments, client)


@_report_failures
def _release(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client, report_interrupt(_LISTED):
        client.release_element(arguments.element)
        return _show(arguments, client)


def _show(arguments: argparse.Namespace, client: Client) -> int:
    """Print the element of a command."""
    found = [e for e in client.elements() if e.name == arguments.element]
    return _print(arguments, found, element_table(found))


def _print(arguments: argparse.Namespace, value: object, text: str) -> int:
    sys.stdout.write((to_json(value) if arguments.json else text) + "\n")
    return DONE
