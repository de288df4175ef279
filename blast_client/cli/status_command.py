"""`blast status`: show one request, requests that have not ended, or others."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Sequence

from blast_api.ttypes import RequestStatus
from blast_base.command_line import DONE, checked, names
from blast_client.api.base_error import InvalidArgumentError
from blast_client.api.client import Client
from blast_client.api.nearest import did_you_mean
from blast_client.api.states import PartState
from blast_client.cli.failures import report_failures
from blast_client.cli.json_form import to_json
from blast_client.cli.options import add_command, connect
from blast_client.cli.request_views import describe_request, request_table, warned
from blast_client.cli.terminal import printable_lines, table_width

LIVE = tuple(state for state in PartState if not state.final)
MAX_LIMIT = 1_000_000
"""More than any controller keeps."""
_EXAMPLES = """\
examples:
  blast status                              pending, configuring and active requests
  blast status nightly-7                    one request with its parts
  blast status --all --limit 20             the last 20, ended or not
  blast status --state failed,expired --json

Requests are listed in order of arrival. Tables have at most 100 columns, or those of the terminal, and … marks
shortened text; the view of one request and --json are complete.
"""


def add_status(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `status` to `blast`."""
    parser = add_command(subparsers, "status", "show one request, or all that have not ended", "")
    parser.epilog = _EXAMPLES
    parser.add_argument("key", metavar="KEY", nargs="?", help="key of one request")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--all", action="store_true", help="all requests, including ended ones that the controller still keeps"
    )
    which.add_argument(
        "--state",
        metavar="STATE,…",
        type=checked(states),
        help=f"states of the requests: {', '.join(map(str, PartState))}",
    )
    parser.add_argument(
        "--limit", metavar="N", type=checked(limit), help="maximum number of requests, the latest (default: all)"
    )
    parser.set_defaults(run=_status)


def states(text: str) -> tuple[PartState, ...]:
    """Parse names of states with commas between them. Raises ValueError."""
    known = {str(state): state for state in PartState}
    for name in (given := [name.lower() for name in names(text)]):
        if name not in known:
            raise ValueError(f"there is no state {name!r}{did_you_mean(name, known)} (there are {', '.join(known)})")
    return tuple(known[name] for name in given)


def limit(text: str) -> int:
    """Parse the maximum number of requests. Raises ValueError."""
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= MAX_LIMIT:
        raise ValueError(f"{text!r} is not a limit: give a number from 1 to {MAX_LIMIT}")
    return int(text)


@report_failures
def _status(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        if arguments.key is not None:
            _show_one(arguments, client)
        else:
            _show_many(arguments, client)
        sys.stdout.flush()
        sys.stderr.writelines(f"{block}\n" for block in warned(client.fabric().warnings))
    return DONE


def _show_one(arguments: argparse.Namespace, client: Client) -> None:
    for option in ("all", "state", "limit"):
        if getattr(arguments, option):
            raise InvalidArgumentError(
                f"--{option} cannot be combined with the key {arguments.key}: leave one of them out"
            )
    status = client.status(arguments.key)
    sys.stdout.write(f"{to_json(status) if arguments.json else printable_lines(describe_request(status))}\n")


def _show_many(arguments: argparse.Namespace, client: Client) -> None:
    selected = () if arguments.all else arguments.state or LIVE
    found = 0
    shown: deque[RequestStatus] = deque(maxlen=arguments.limit)
    for request in client.list_requests(selected):
        found += 1
        shown.append(request)
    if arguments.json:
        text = to_json(list(shown))
    else:
        text = request_table(shown, table_width()) if shown else _nothing(selected)
    sys.stdout.write(f"{text}\n")
    if found > len(shown):
        sys.stdout.flush()
        sys.stderr.write(f"blast: {found - len(shown)} earlier requests are not shown: raise --limit\n")


def _nothing(selected: Sequence[PartState]) -> str:
    if not selected:
        return "no requests"
    if selected == LIVE:
        return "no live requests (`blast status --all` also shows ended requests)"
    return f"no requests in state {' or '.join(map(str, selected))}"
