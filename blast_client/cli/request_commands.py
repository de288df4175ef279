"""`blast request|extend|withdraw|finish|status|explain|top`: commands on requests."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from blast_api.ttypes import Extension, Grant, MulticastRequest, RequestStatus, TransferReport
from blast_base.command_line import DONE, FAILED, checked, names
from blast_client.api.base_error import BlastError
from blast_client.api.calls import ControllerUnreachableError, milliseconds
from blast_client.api.client import Client
from blast_client.api.errors import Ended, Rejected, TimedOut
from blast_client.api.states import PartState
from blast_client.api.unknown_hosts import CODE, hosts_of, meant
from blast_client.cli.failures import report_failures
from blast_client.cli.interrupts import ended_by_signals, report_interrupt
from blast_client.cli.json_form import plain, to_json
from blast_client.cli.options import add_command, connect
from blast_client.cli.request_views import (
    describe_explanation,
    describe_grant,
    describe_request,
    top_screen,
)
from blast_client.cli.status_command import LIVE, add_status
from blast_client.cli.terminal import printable_lines, table_width
from blast_client.cli.units import parse_bytes, parse_seconds

_CLEAR_SCREEN = "\x1b[H\x1b[2J"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add these commands to `blast`."""
    _register_request(subparsers)
    _register_extend(subparsers)
    _register_finish(subparsers)
    withdraw = add_command(subparsers, "withdraw", "withdraw a pending or active request", "blast withdraw nightly-7")
    withdraw.add_argument("key", metavar="KEY", help="key of the request")
    withdraw.set_defaults(run=_withdraw)
    add_status(subparsers)
    summary = "explain what blocks a request, and when it could start"
    explain = add_command(subparsers, "explain", summary, "blast explain nightly-7")
    explain.add_argument("key", metavar="KEY", help="key of the request")
    explain.set_defaults(run=_explain)
    _register_top(subparsers)


def _register_request(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    example = "blast request --from h1 --to h2,h3,h4 --bytes 300MB --timeout 60"
    parser = add_command(subparsers, "request", "submit a multicast request and wait for its grant", example)
    parser.add_argument("--from", dest="sender", metavar="HOST", required=True, help="sender")
    parser.add_argument(
        "--to", dest="receivers", metavar="HOST,…", type=checked(names), required=True, help="receivers"
    )
    parser.add_argument(
        "--bytes", metavar="SIZE", type=checked(parse_bytes), required=True, help="size of the data, for example 300MB"
    )
    parser.add_argument(
        "--key",
        type=checked(_key),
        help="key of the request; the same key and content is the same request (default: random)",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=checked(parse_seconds),
        default=60.0,
        help="time to wait for the grant (default: 60s)",
    )
    parser.add_argument(
        "--pending-timeout",
        metavar="TIME",
        type=checked(parse_seconds),
        help="time after which the pending request expires (default: none)",
    )
    parser.add_argument("--priority", metavar="N", type=int, help="priority; the highest is served first (default: 0)")
    parser.add_argument(
        "--deadline",
        metavar="TIME",
        type=checked(parse_seconds),
        help="wanted end of the transfer, from now, for policy edf (default: none)",
    )
    parser.add_argument("--may-split", action="store_true", help="permission to serve the receivers in several parts")
    parser.add_argument(
        "--may-pause", action="store_true", help="permission to interrupt the transfer between two leases"
    )
    parser.add_argument("--no-wait", action="store_true", help="submission without waiting for the grant")
    parser.set_defaults(run=_request)


def _register_extend(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    example = "blast extend nightly-7 --add h5,h6 --time 20s"
    parser = add_command(subparsers, "extend", "change the members, time or size of a request", example)
    parser.add_argument("key", metavar="KEY", help="key of the request")
    parser.add_argument("--add", metavar="HOST,…", type=checked(names), help="receivers to add")
    parser.add_argument("--remove", metavar="HOST,…", type=checked(names), help="receivers to remove")
    parser.add_argument("--time", metavar="TIME", type=checked(parse_seconds), help="time to add to the lease")
    parser.add_argument("--bytes", metavar="SIZE", type=checked(parse_bytes), help="bytes to add to the size")
    parser.set_defaults(run=_extend, refuse=parser.error)


def _register_finish(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    example = "blast finish nightly-7 --bytes-sent 300MB"
    parser = add_command(subparsers, "finish", "report the end of a transfer and release its resources", example)
    parser.add_argument("key", metavar="KEY", help="key of the request")
    parser.add_argument("--part", type=int, default=0, help="part of the request (default: 0)")
    parser.add_argument("--bytes-sent", metavar="SIZE", type=checked(parse_bytes), help="bytes sent, for statistics")
    parser.add_argument(
        "--duration", metavar="TIME", type=checked(parse_seconds), help="duration of the transfer, for statistics"
    )
    parser.set_defaults(run=_finish)


def _register_top(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(subparsers, "top", "watch requests, light trees and free resources", "blast top --interval 2s")
    parser.add_argument(
        "--interval", metavar="TIME", type=checked(_interval), default=1.0, help="time between views (default: 1s)"
    )
    parser.add_argument("--once", action="store_true", help="a single view")
    parser.set_defaults(run=_top)


def _key(text: str) -> str:
    """Parse a key. Raises ValueError."""
    if not text:
        raise ValueError("the key is empty: give a key, or leave --key out for a random one")
    return text


def _interval(text: str) -> float:
    """Parse an interval. Raises ValueError."""
    seconds = parse_seconds(text)
    if seconds == 0:
        raise ValueError("the interval must be above 0; --once prints a single view")
    return seconds


# ---------------------------------------------------------------------- commands


@report_failures
def _request(arguments: argparse.Namespace) -> int:
    request = MulticastRequest(
        key=f"cli-{secrets.token_hex(6)}" if arguments.key is None else arguments.key,
        sender=arguments.sender,
        receivers=arguments.receivers,
        bytes=arguments.bytes,
        pendingTimeoutMs=None if arguments.pending_timeout is None else milliseconds(arguments.pending_timeout),
        deadlineMs=None if arguments.deadline is None else milliseconds(arguments.deadline),
        priority=arguments.priority,
        maySplit=arguments.may_split or None,
        mayPause=arguments.may_pause or None,
    )
    with connect(arguments) as client, _naming_hosts(client, [request.sender, *request.receivers]):
        if arguments.no_wait:
            return _show(arguments, client.submit(request))
        try:
            grant = _grant(client, request, arguments.timeout)
        except TimedOut as error:
            sys.stderr.write(
                f"blast: not yet: {error.message.rstrip('.')}; request {request.key} stays pending "
                f"(`blast status {request.key}`, `blast withdraw {request.key}`)\n"
            )
            return FAILED
    _print(arguments, grant, describe_grant(grant, arguments.bytes))
    return DONE


def _grant(client: Client, request: MulticastRequest, seconds: float) -> Grant:
    """Submit a request and wait for its grant; withdraw it if a signal ends the command meanwhile."""
    begun = time.monotonic()
    status = None
    try:
        with ended_by_signals():
            status = client.submit(request)
            is_ours = status.ageMs <= (time.monotonic() - begun) * 1000 + 1
            return _await_grant(client, status, seconds)
    except (KeyboardInterrupt, SystemExit):
        if status is None or is_ours:
            sys.stderr.write(f"blast: interrupted: {_withdrawal(client, request)}\n")
        else:
            sys.stderr.write(
                f"blast: interrupted: request {request.key} existed before and continues (`blast withdraw "
                f"{request.key}` withdraws it)\n"
            )
        raise
    except ControllerUnreachableError as error:
        if status is not None:
            error.add_note(
                f"request {request.key} continues if the controller does (`blast withdraw {request.key}` withdraws it)"
            )
        raise


def _withdrawal(client: Client, request: MulticastRequest) -> str:
    """Withdraw a request, and return a message on the outcome."""
    try:
        if client._calls_sent:
            client._withdraw_soon(request, is_own=False)
        return f"request {request.key} is withdrawn"
    except BlastError as failure:
        reason = str(failure)
    except KeyboardInterrupt:
        reason = "interrupted again"
    return f"request {request.key} could not be withdrawn, run `blast withdraw {request.key}`: {reason}"


def _await_grant(client: Client, status: RequestStatus, seconds: float) -> Grant:
    """Wait for an active part of a request, and return its grant."""
    end = time.monotonic() + seconds
    while True:
        for part in status.parts:
            if part.state == PartState.ACTIVE and part.grant is not None:
                return part.grant
        state = PartState(status.state)
        if state.final:
            raise Ended(state, next((part.reason for part in status.parts if part.reason), "no reason given"))
        client.await_event(status.key, status.latestSequence, max(end - time.monotonic(), 0.0))
        status = client.status(status.key)


@report_failures
def _extend(arguments: argparse.Namespace) -> int:
    if not any((arguments.add, arguments.remove, arguments.time, arguments.bytes)):
        arguments.refuse("no change requested: give --add, --remove, --time or --bytes")
    extension = Extension(
        addReceivers=arguments.add,
        removeReceivers=arguments.remove,
        addLeaseMs=None if arguments.time is None else milliseconds(arguments.time),
        addBytes=arguments.bytes,
    )
    added = arguments.add or []
    with (
        connect(arguments) as client,
        report_interrupt(_unknown(arguments.key)),
        _naming_hosts(client, added),
    ):
        return _show(arguments, client.extend(arguments.key, extension))


@report_failures
def _finish(arguments: argparse.Namespace) -> int:
    duration = None if arguments.duration is None else milliseconds(arguments.duration)
    with connect(arguments) as client, report_interrupt(_unknown(arguments.key)):
        report = TransferReport(bytesSent=arguments.bytes_sent, durationMs=duration)
        return _show(arguments, client.finish(arguments.key, arguments.part, report))


@report_failures
def _withdraw(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client, report_interrupt(_unknown(arguments.key)):
        return _show(arguments, client.withdraw(arguments.key))


@report_failures
def _explain(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        explanation = client.explain(arguments.key)
    _print(arguments, explanation, describe_explanation(explanation))
    return DONE


@report_failures
def _top(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        while True:
            fabric, requests = client.fabric(), list(client.list_requests(LIVE))
            if arguments.json:
                _write(to_json({"fabric": plain(fabric), "requests": plain(requests)}))
            else:
                screen = top_screen(fabric, requests, arguments.controller, table_width())
                _write(screen if arguments.once else _CLEAR_SCREEN + screen)
            if arguments.once:
                return DONE
            time.sleep(arguments.interval)


@contextmanager
def _naming_hosts(client: Client, names: Sequence[str]) -> Iterator[None]:
    """Suggest similar hosts if the controller does not know one of these."""
    try:
        yield
    except Rejected as error:
        with suppress(BlastError):
            if error.code == CODE and (question := meant(names, hosts_of(client.fabric()))):
                error.add_note(question)
        raise


def _unknown(key: str) -> str:
    return f"the outcome is unknown, `blast status {key}` shows request {key}"


def _show(arguments: argparse.Namespace, status: RequestStatus) -> int:
    _print(arguments, status, describe_request(status))
    return DONE


def _print(arguments: argparse.Namespace, value: object, text: str) -> None:
    _write(to_json(value) if arguments.json else printable_lines(text))


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
