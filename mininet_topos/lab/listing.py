"""`blast lab list`: the labs on this machine, their owners, and the addresses of their controllers."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from blast_client.cli.terminal import table_width
from blast_client.cli.text_table import text_table
from blast_client.cli.units import format_ms
from mininet_topos.kernel.netdev import require_root
from mininet_topos.lab import registry
from mininet_topos.lab.cleanup import found_labs

_EXAMPLE = """\
example:
  blast lab list           every lab, including remains of crashed ones
  blast lab list --json    the same for scripts

To use a lab's controller, pass its address in --controller or $BLAST_CONTROLLER."""


@dataclass(frozen=True, slots=True)
class ListedLab:
    """A lab on this machine. `pid` is the process that owns it, started `seconds` ago; None if it has ended."""

    lab: str
    pid: int | None
    command: str
    seconds: float | None
    controller: str | None
    summary: str


def listed(lab: str) -> ListedLab:
    """Return the data of a lab."""
    state, pid = registry.read_state(lab), registry.owner_process(lab)
    seconds = None if pid is None else _age(pid)
    return ListedLab(lab, pid, _command(pid), seconds, state.get("thrift"), state.get("summary", ""))


def lab_table(labs: list[ListedLab], max_width: int) -> str:
    """Return a table of labs, one line each of at most `max_width` columns."""
    if not labs:
        return "no lab on this machine"
    rows = [
        [
            each.lab,
            "" if each.seconds is None else format_ms(each.seconds * 1000),
            _held_by(each),
            each.controller or "none",
            each.summary,
        ]
        for each in labs
    ]
    return text_table(["LAB", "AGE", "OWNER", "CONTROLLER", "SUMMARY"], rows, max_width)


def register_list(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add `list` to `blast lab`; the caller sets its `run`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "list",
        help="list the labs on this machine",
        description="List the labs on this machine, including remains of crashed ones.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def list_labs(options: argparse.Namespace) -> int:
    """Print the labs; return the exit status. Raises `HostError`."""
    require_root()
    labs = [listed(lab) for lab in found_labs()]
    text = json.dumps({"labs": [asdict(lab) for lab in labs]}) if options.json else lab_table(labs, table_width())
    sys.stdout.write(f"{text}\n")
    return 0


def _held_by(lab: ListedLab) -> str:
    return f"{lab.pid} {lab.command}" if lab.pid is not None else f"none: `blast lab down {lab.lab}` removes it"


def _age(pid: int) -> float | None:
    """Return the seconds since a process began; None if it has ended."""
    began = registry.started(pid)
    return None if began is None else time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")


def _command(pid: int | None) -> str:
    """Return the command line of a process, without its interpreter."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return ""
    if len(words) > 1 and Path(words[0]).name.startswith("python"):
        words = words[1:]
    return " ".join([Path(words[0]).name, *words[1:]]) if words else ""
