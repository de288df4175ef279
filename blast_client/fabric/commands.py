"""`blast fabric show|svg|verify`: print and draw the fabric, and verify its fibers.

Other packages add commands by entry points of the group `blast.fabric_commands`.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.metadata import entry_points
from pathlib import Path

from blast_base.command_line import DONE, FAILED, WRONG_INPUT
from blast_client.cli.command import add_commands
from blast_client.cli.failures import report_failures
from blast_client.cli.json_form import to_json
from blast_client.cli.operator_commands import register_verify
from blast_client.cli.options import add_command, connect
from blast_client.fabric.svg import fabric_svg
from blast_client.fabric.table import fabric_table

GROUP = "blast.fabric_commands"
_WRONG_PLACE = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add these commands to `blast`."""
    fabric = subparsers.add_parser(
        "fabric",
        help="show racks, splitters, optical switches and light trees",
        description="Show racks, splitters, optical switches and light trees.",
        epilog="examples:\n  blast fabric show\n  blast fabric svg --output fabric.svg",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = fabric.add_subparsers(metavar="COMMAND", required=True)
    show = add_command(kinds, "show", "print the fabric as tables", "blast fabric show --controller 10.0.0.1:9090")
    show.set_defaults(run=_show)
    svg = add_command(kinds, "svg", "draw the fabric as an SVG picture", "blast fabric svg --output fabric.svg")
    svg.epilog = (
        f"{svg.epilog}\n\nWith --json standard output is JSON with the text `svg`; the file of --output is SVG."
    )
    svg.add_argument("--output", metavar="FILE", type=Path, help="file to write (default: standard output)")
    svg.set_defaults(run=_svg)
    register_verify(kinds)
    add_commands(entry_points(group=GROUP), kinds)


@report_failures
def _show(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        fabric = client.fabric()
    sys.stdout.write((to_json(fabric) if arguments.json else fabric_table(fabric)) + "\n")
    return DONE


@report_failures
def _svg(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        fabric = client.fabric()
    picture = fabric_svg(fabric)
    if arguments.output is None:
        sys.stdout.write(f"{json.dumps({'svg': picture})}\n" if arguments.json else picture)
        return DONE
    try:
        arguments.output.write_text(picture, encoding="utf-8")
    except OSError as error:
        sys.stderr.write(f"blast: cannot write {arguments.output} ({error.strerror}): choose another --output\n")
        return WRONG_INPUT if isinstance(error, _WRONG_PLACE) else FAILED
    if arguments.json:
        sys.stdout.write(f"{json.dumps({'file': str(arguments.output)})}\n")
    return DONE
