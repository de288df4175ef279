"""`blast lab list`: the labs on this machine, who holds each, and where its controller serves."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from blast_client.terminal import table_width
from blast_client.text_table import text_table
from blast_client.units import format_ms
from mininet_topos import registry
from mininet_topos.cleanup import found_labs
from mininet_topos.netdev import require_root

_EXAMPLE = """\
example:
  blast lab list           every lab, also what is left of one whose owner crashed
  blast lab list --json    the same for scripts

To talk to a lab's controller, give its address to --controller or $BLAST_CONTROLLER."""


@dataclass(frozen=True, slots=True)
class ListedLab:
    """A lab as it is found. `pid`: the process that holds it, which began `seconds` ago; None: it has ended."""

    lab: str
    pid: int | None
    command: str
    seconds: float | None
    controller: str | None
    summary: str


def listed(lab: str) -> ListedLab:
    """What is known of a lab."""
    state, pid = registry.read_state(lab), registry.owner_process(lab)
    seconds = None if pid is None else _age(pid)
    return ListedLab(lab, pid, _command(pid), seconds, state.get("thrift"), state.get("summary", ""))


def lab_table(labs: list[ListedLab], most: int) -> str:
    """Labs, one a line of `most` columns."""
    if not labs:
        return "there is no lab on this machine"
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
    return text_table(["LAB", "SINCE", "HELD BY", "CONTROLLER", "WHAT"], rows, most)


def register_list(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add `list` to `blast lab`; its caller says what it runs."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "list",
        help="list the labs on this machine",
        description="List the labs on this machine, also what is left of those whose owner crashed.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def list_labs(options: argparse.Namespace) -> int:
    """Print them; the exit status. Raises `HostError`."""
    require_root()
    labs = [listed(lab) for lab in found_labs()]
    text = json.dumps({"labs": [asdict(lab) for lab in labs]}) if options.json else lab_table(labs, table_width())
    sys.stdout.write(f"{text}\n")
    return 0


def _held_by(lab: ListedLab) -> str:
    return f"{lab.pid} {lab.command}" if lab.pid is not None else f"left behind, `blast lab down {lab.lab}` removes it"


def _age(pid: int) -> float | None:
    """Seconds since a process began; None when it has ended."""
    began = registry.started(pid)
    return None if began is None else time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")


def _command(pid: int | None) -> str:
    """What a process was started as, without its interpreter."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return ""
    if len(words) > 1 and Path(words[0]).name.startswith("python"):
        words = words[1:]
    return " ".join([Path(words[0]).name, *words[1:]]) if words else ""
