"""The steps of `blast switch probe`: find the protocol, open a session, read, and report."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from argparse import Namespace

from blast_base.command_line import DONE, FAILED, INTERRUPTED, WRONG_INPUT
from blast_base.endpoint import Endpoint
from blast_base.extras import NotInstalledError, require
from blast_client.cli.terminal import printable, table_width
from blast_controller.cli.switch.probe.attempts import NoFitError, fitting_tables
from blast_controller.cli.switch.probe.discovery import USUAL_TIMES, DiscoveredPeer, DiscoveryTimes, discover
from blast_controller.cli.switch.probe.failures import ProbeFailureError, advised, distrusts_host_key, refuses_login
from blast_controller.cli.switch.probe.first_bytes import PeerProtocol
from blast_controller.cli.switch.probe.host_key import lacks_host_key, presented_host_key
from blast_controller.cli.switch.probe.report import SwitchReport, report_of
from blast_controller.cli.switch.probe.settings import InvalidSettingError, SwitchTable, settings_table
from blast_controller.cli.switch.probe.suggestions import SOCKET_TABLE, mismatch, missing_keys, suggested_table
from blast_controller.cli.switch.probe.views import json_report, text_report
from blast_controller.configuration.config import ConfigError
from optical_switch.errors import OpticalSwitchError, ProtocolError, UnreachableError

DEFAULT_NAME = "ocs1"
MAX_SENTENCE = 1500
"""Characters of an error: the reason of each dialect of TL1 fits."""


def run_probe(options: Namespace) -> int:
    """Probe the switch at `options.address` or at a Unix socket, print the report, and return the exit status."""
    # The core library of gRPC prints on standard error by itself.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        table = settings_table(options.set)
        _check_place(options.address, table)
        report = asyncio.run(_interruptible(options.address, options.driver, table))
    except InvalidSettingError as error:
        return _complain(str(error), WRONG_INPUT)
    except ProbeFailureError as failure:
        if failure.notes:
            first, *others = failure.notes
            sys.stderr.write("".join(f"{line}\n" for line in (f"blast switch probe: {first}", *others)))
        return _complain(str(failure), failure.status)
    sys.stdout.write(f"{json_report(report) if options.json else text_report(report, table_width())}\n")
    return DONE


def _check_place(endpoint: Endpoint | None, table: SwitchTable) -> None:
    if (endpoint is None) == ("socket" not in table):
        raise InvalidSettingError("give ADDRESS, or --set socket=PATH for Redis at a Unix socket")


def _complain(sentence: str, status: int) -> int:
    # It may repeat text of the switch.
    shown = printable(sentence.rstrip("."))
    shown = shown if len(shown) <= MAX_SENTENCE else f"{shown[:MAX_SENTENCE]}…"
    sys.stderr.write(f"blast switch probe: {shown}\n")
    return status


async def _interruptible(endpoint: Endpoint | None, driver: str | None, table: SwitchTable) -> SwitchReport:
    """Probe a switch; Ctrl-C ends the process at once.

    Nothing has to be undone, and the system closes the connections. An orderly end could take seconds: a session that
    is closed waits for the switch, and Python waits for the resolver of host names.
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, os._exit, INTERRUPTED)
    return await (probe_socket(driver, table) if endpoint is None else probe(endpoint, driver, table))


async def probe_socket(driver: str | None, settings: SwitchTable) -> SwitchReport:
    """Return the report about a switch at a Unix socket.

    Parameters
    ----------
    driver : str | None
        Name of its driver. None: the usual one.
    settings : SwitchTable
        Keys of its table; `socket` is one of them.

    Returns
    -------
    SwitchReport
        The report.

    Raises
    ------
    ProbeFailureError
        If no session can be opened, or a key is missing or wrong.
    """
    table: SwitchTable = {"name": DEFAULT_NAME, **SOCKET_TABLE, **({"driver": driver} if driver else {}), **settings}
    try:
        return report_of(await fitting_tables(table))
    except NoFitError as error:
        reason = next(iter(error.reasons.values()))
        if isinstance(reason, ConfigError):
            raise ProbeFailureError(str(reason), WRONG_INPUT) from error
        raise ProbeFailureError(advised(reason, table)) from error
    except OpticalSwitchError as error:
        raise ProbeFailureError(advised(error, table)) from error


async def probe(
    endpoint: Endpoint, driver: str | None, settings: SwitchTable, times: DiscoveryTimes = USUAL_TIMES
) -> SwitchReport:
    """Return the report about a switch.

    Parameters
    ----------
    endpoint : Endpoint
        Address of the switch.
    driver : str | None
        Name of its driver. None: the one for the protocol that the switch speaks.
    settings : SwitchTable
        Keys of its table.
    times : DiscoveryTimes
        Time limits for finding the protocol.

    Returns
    -------
    SwitchReport
        The report.

    Raises
    ------
    ProbeFailureError
        If no session can be opened, or a key is missing or wrong.
    """
    table: SwitchTable = {"name": DEFAULT_NAME, "address": str(endpoint), "driver": driver, **settings}
    try:
        peer = None if driver is not None else await discover(endpoint, times)
        if peer is not None:
            table |= {**suggested_table(peer, endpoint), **settings}
        await _check(peer, table, endpoint)
        return report_of(await fitting_tables(table))
    except NoFitError as error:
        raise await _no_fit(error, table, endpoint, peer, times) from error
    except ConfigError as error:
        raise ProbeFailureError(str(error), WRONG_INPUT) from error
    except OpticalSwitchError as error:
        if distrusts_host_key(error):
            raise await _untrusted(error, endpoint) from error
        raise ProbeFailureError(advised(error, table) if refuses_login(error) else str(error)) from error


async def _check(peer: DiscoveredPeer | None, table: SwitchTable, endpoint: Endpoint) -> None:
    """Raise ProbeFailureError if a key is missing without which no session can be opened."""
    missing = "" if peer is None else missing_keys(peer, table, endpoint)
    if not missing and not lacks_host_key(table):
        return
    is_ssh = lacks_host_key(table) or (peer is not None and peer.protocol is PeerProtocol.SSH)
    notes = await _host_key_notes(endpoint) if is_ssh else ()
    unknown = f"the host key of {endpoint} is not known: give --set ssh.host_key=FILE, or --set ssh.known_hosts=FILE"
    raise ProbeFailureError(missing or unknown, WRONG_INPUT, notes)


async def _host_key_notes(endpoint: Endpoint) -> tuple[str, ...]:
    try:
        require("ssh-switches", "asyncssh")
    except NotInstalledError as error:
        raise ProbeFailureError(f"{endpoint} requires SSH: {error}") from error
    return (await presented_host_key(endpoint)).notes(endpoint)


async def _untrusted(error: OpticalSwitchError, endpoint: Endpoint) -> ProbeFailureError:
    """Return the failure if the host key is another one than the trusted one."""
    try:
        return ProbeFailureError(str(error), FAILED, await _host_key_notes(endpoint))
    except UnreachableError:
        return ProbeFailureError(str(error))


async def _no_fit(
    error: NoFitError, table: SwitchTable, endpoint: Endpoint, peer: DiscoveredPeer | None, times: DiscoveryTimes
) -> ProbeFailureError:
    """Return the failure if no session can be opened."""
    reasons = list(error.reasons.values())
    if isinstance(reasons[0], ConfigError):
        return ProbeFailureError(str(reasons[0]), WRONG_INPUT)
    try:
        hint = mismatch(peer or await discover(endpoint, times), table)
    except UnreachableError as unreachable:
        return ProbeFailureError(str(unreachable))
    except ProtocolError:
        hint = "its protocol is not known, either: check the port"
    # Only dialects differ so much that each has a reason of its own.
    if hint or len(reasons) == 1 or table["driver"] != "tl1":
        return ProbeFailureError(advised(reasons[0], table, hint))
    return ProbeFailureError(f"{endpoint}: no setting fits ({error}): give the dialect, or correct the port")
