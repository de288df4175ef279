"""`blast drain|resume|reconcile|element|quarantine|release`: taking hardware and the controller in and out of use."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import wraps

from blast_api.ttypes import Unsupported
from blast_client.client import Client
from blast_client.failures import DONE, FAILED, explain_failure, telling_failures
from blast_client.interrupts import telling_when_interrupted
from blast_client.json_form import to_json
from blast_client.operator_views import (
    describe_drain,
    describe_fibers,
    describe_reconcile,
    element_table,
    fibers_status,
    reconcile_status,
)
from blast_client.options import add_command, checked, connect
from blast_client.units import parse_seconds

_READING_DEVICES = 60.0
_PROBING_FIBERS = 600.0
_STATES = ("free", "reserved", "unusable", "away")
_LISTED = "whether that was done is not known, `blast element list` tells"
_SWITCH = {"on": True, "off": False, "status": None}
"""What `drain` is asked; a call that names neither on nor off only asks."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add these commands to `blast`."""
    drain = add_command(subparsers, "drain", "take no new requests, let active ones end", "blast drain on")
    drain.add_argument("what", choices=list(_SWITCH), help="begin, end, or only tell")
    drain.set_defaults(run=_drain)
    reconcile = add_command(
        subparsers,
        "reconcile",
        "compare what devices hold with what they should, and repair it",
        "blast reconcile --dry-run",
    )
    reconcile.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    _add_timeout(reconcile, _READING_DEVICES)
    reconcile.set_defaults(run=_reconcile)
    resume = add_command(subparsers, "resume", "let a controller that is holding decide again", "blast resume")
    resume.set_defaults(run=_resume)
    step_down = add_command(subparsers, "step-down", "let another controller lead; light goes on", "blast step-down")
    step_down.set_defaults(run=_stand_down)
    element = subparsers.add_parser(
        "element",
        help="list hardware, take it out of use and back",
        description="List ports, splitters, switches and ToRs, take them out of use and back.",
        epilog="examples:\n  blast element list --state unusable\n"
        "  blast element quarantine splitter:s1 --reason 'dirty connector'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = element.add_subparsers(metavar="WHAT", required=True)
    listing = add_command(kinds, "list", "list hardware and its state", "blast element list --state away")
    listing.add_argument("--state", choices=_STATES, help="only those in this state")
    listing.set_defaults(run=_list)
    # Both `blast quarantine` and `blast element quarantine` are said.
    for place, prefix in ((kinds, "blast element"), (subparsers, "blast")):
        _register_quarantine(place, prefix)


def register_verify(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `verify` to the sub-commands of `blast fabric`."""
    verify = add_command(
        kinds, "verify", "check the fibers against the configuration with probe frames", "blast fabric verify"
    )
    _add_timeout(verify, _PROBING_FIBERS)
    verify.set_defaults(run=_verify)


def _register_quarantine(place: argparse._SubParsersAction[argparse.ArgumentParser], prefix: str) -> None:
    example = f"{prefix} quarantine splitter:s1 --reason 'dirty connector'"
    quarantine = add_command(place, "quarantine", "take an element out of use; what it serves now goes on", example)
    quarantine.add_argument("element", metavar="ELEMENT", help="as `blast element list` names it")
    quarantine.add_argument("--reason", required=True, help="told to whoever asks why it is not used")
    quarantine.set_defaults(run=_quarantine)
    release = add_command(place, "release", "put a quarantined element back into use", f"{prefix} release splitter:s1")
    release.add_argument("element", metavar="ELEMENT", help="as `blast element list` names it")
    release.set_defaults(run=_release)


def _add_timeout(parser: argparse.ArgumentParser, default: float) -> None:
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=checked(parse_seconds),
        default=default,
        help=f"wait so long for the answer (default: {default:g}s)",
    )


# ---------------------------------------------------------------------- what they do


def _telling(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """As `telling_failures`, but a controller that does not serve a command is not the user's mistake."""

    @telling_failures
    @wraps(run)
    def wrapped(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except Unsupported as error:
            sys.stderr.write(f"blast: {explain_failure(error)[1]}\n")
            return FAILED

    return wrapped


@_telling
def _drain(arguments: argparse.Namespace) -> int:
    unknown = "what the controller does now, `blast drain status` tells"
    with connect(arguments) as client, telling_when_interrupted(unknown):
        status = client.drain(_SWITCH[arguments.what])
    return _print(arguments, status, describe_drain(status))


@_telling
def _stand_down(arguments: argparse.Namespace) -> int:
    unknown = "whether another controller leads by now, `blast fabric show` tells"
    with connect(arguments) as client, telling_when_interrupted(unknown):
        client.step_down()
    return _print(arguments, None, "another controller takes over")


@_telling
def _resume(arguments: argparse.Namespace) -> int:
    unknown = "whether the controller decides again, `blast status` tells"
    with connect(arguments) as client, telling_when_interrupted(unknown):
        client.resume()
        fabric = client.fabric()
    return _print(arguments, fabric, "\n".join([*(fabric.warnings or ()), "the controller decides again"]))


@_telling
def _reconcile(arguments: argparse.Namespace) -> int:
    goes_on = "the controller goes on comparing" + (
        "" if arguments.dry_run else " and repairing, `blast journal show` tells what it does"
    )
    with connect(arguments, arguments.timeout) as client, telling_when_interrupted(goes_on):
        report = client.reconcile(arguments.dry_run)
    _print(arguments, report, describe_reconcile(report))
    return reconcile_status(report)


@_telling
def _verify(arguments: argparse.Namespace) -> int:
    goes_on = "the controller goes on probing, `blast fabric verify` shows what it finds"
    with connect(arguments, arguments.timeout) as client, telling_when_interrupted(goes_on):
        report = client.verify_fabric()
    _print(arguments, report, describe_fibers(report))
    return fibers_status(report)


@_telling
def _list(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        elements = [e for e in client.elements() if arguments.state in (None, e.state)]
    return _print(arguments, elements, element_table(elements))


@_telling
def _quarantine(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client, telling_when_interrupted(_LISTED):
        client.quarantine(arguments.element, arguments.reason)
        return _show(arguments, client)


@_telling
def _release(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client, telling_when_interrupted(_LISTED):
        client.release_element(arguments.element)
        return _show(arguments, client)


def _show(arguments: argparse.Namespace, client: Client) -> int:
    """The element as it is now."""
    found = [e for e in client.elements() if e.name == arguments.element]
    return _print(arguments, found, element_table(found))


def _print(arguments: argparse.Namespace, value: object, text: str) -> int:
    sys.stdout.write((to_json(value) if arguments.json else text) + "\n")
    return DONE
