"""`blast status`: one request, or those that are live, or more of them."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Sequence

from blast_api.ttypes import RequestStatus
from blast_client.base_error import WrongArgument
from blast_client.client import Client
from blast_client.failures import DONE, telling_failures
from blast_client.json_form import to_json
from blast_client.nearest import did_you_mean
from blast_client.options import add_command, checked, connect, names
from blast_client.request_views import describe_request, request_table, warned
from blast_client.states import PartState
from blast_client.terminal import printable_lines, table_width

LIVE = tuple(state for state in PartState if not state.final)
MOST = 1_000_000
_EXAMPLES = """\
examples:
  blast status                              what waits, is being lit, or has light
  blast status nightly-7                    one request with its parts
  blast status --all --limit 20             the last 20, ended or not
  blast status --state failed,expired --json

Requests are told in the order of their arrival. Text that does not fit into 100 columns (on a terminal: into its own)
is shortened with …; one request alone and --json are told whole.
"""


def add_status(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `status` to `blast`."""
    parser = add_command(subparsers, "status", "show one request, or all that are live", "")
    parser.epilog = _EXAMPLES
    parser.add_argument("key", metavar="KEY", nargs="?", help="the request to show")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--all", action="store_true", help="also requests that have ended, as long as the controller remembers them"
    )
    which.add_argument(
        "--state",
        metavar="STATE,…",
        type=checked(states),
        help=f"requests in these states: {', '.join(map(str, PartState))}",
    )
    parser.add_argument("--limit", metavar="N", type=checked(limit), help="the last N of them at most")
    parser.set_defaults(run=_status)


def states(text: str) -> tuple[PartState, ...]:
    """States by their names, with commas between. Raises ValueError."""
    known = {str(state): state for state in PartState}
    for name in (given := [name.lower() for name in names(text)]):
        if name not in known:
            raise ValueError(f"there is no state {name!r}{did_you_mean(name, known)} (there are {', '.join(known)})")
    return tuple(known[name] for name in given)


def limit(text: str) -> int:
    """How many are shown at most. Raises ValueError."""
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= MOST:
        raise ValueError(f"{text!r} is no limit: give a number from 1 to {MOST}")
    return int(text)


@telling_failures
def _status(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        if arguments.key is not None:
            _show_one(arguments, client)
        else:
            _show_many(arguments, client)
        sys.stdout.flush()
        # What is to be known of the controller itself.
        sys.stderr.writelines(f"{block}\n" for block in warned(client.fabric().warnings))
    return DONE


def _show_one(arguments: argparse.Namespace, client: Client) -> None:
    for option in ("all", "state", "limit"):
        if getattr(arguments, option):
            raise WrongArgument(f"--{option} is for many requests: leave it out, or leave out {arguments.key}")
    status = client.status(arguments.key)
    sys.stdout.write(f"{to_json(status) if arguments.json else printable_lines(describe_request(status))}\n")


def _show_many(arguments: argparse.Namespace, client: Client) -> None:
    wanted = () if arguments.all else arguments.state or LIVE
    found = 0
    shown: deque[RequestStatus] = deque(maxlen=arguments.limit)
    for request in client.list_requests(wanted):
        found += 1
        shown.append(request)
    if arguments.json:
        text = to_json(list(shown))
    else:
        text = request_table(shown, table_width()) if shown else _nothing(wanted)
    sys.stdout.write(f"{text}\n")
    if found > len(shown):
        sys.stdout.flush()
        sys.stderr.write(f"blast: {found - len(shown)} more came before these: a higher --limit shows them\n")


def _nothing(wanted: Sequence[PartState]) -> str:
    if not wanted:
        return "no requests"
    if wanted == LIVE:
        return "no live requests (`blast status --all` also shows those that have ended)"
    return f"no requests that are {' or '.join(map(str, wanted))}"
