"""The job of `blast send`: interpret the options, send, and report the outcome."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from blast_base.command_line import DONE, FAILED, PARTLY
from blast_client.api.tls import read_token
from blast_client.cli.options import tls_settings
from blast_client.send.failures import NoReceiverReachedError, reasons_of
from blast_client.send.hosts_file import HostLists, read_hosts
from blast_client.send.node_sets import check_count
from blast_client.send.option_values import AUTO, RACKS, SECRET_VARIABLE
from blast_client.send.progress import ProgressLines, ProgressView, bar
from blast_client.send.receivers import Receiver, check_once
from blast_client.send.round import RoundSettings
from blast_client.send.several import several
from blast_client.send.stopped import INTERRUPTED, TERMINATED, cancelled_by_sigterm
from blast_client.send.target import names_stream, target_of
from blast_client.send.transfer import SendTransfer
from blast_transport.base.errors import TransportError, WrongInputError
from blast_transport.credentials.material import Credentials, SharedSecret, read_secret, refuse_readable_by_others
from blast_transport.credentials.tls import TlsFiles
from blast_transport.transports.choices import UNLIMITED, MulticastChoice
from blast_transport.wire.groups import GroupRange
from blast_transport.wire.pipeline_bounds import NODE_TIMEOUT
from blast_transport.wire.transports import OPTICAL

_UNDEFINED = "the content of {} is undefined on hosts that do not have all data, unless no byte was written"


def run_send(arguments: argparse.Namespace) -> int:
    """Send and return the exit status. Raises BlastError, TransportError."""
    return _run_each(arguments) if arguments.more else _run_one(arguments)


def _run_one(arguments: argparse.Namespace) -> int:
    if names_stream(arguments):
        sys.stderr.write(f"blast: name of the stream at the receivers: {arguments.name} (change it with --as)\n")
    receivers = receivers_of(arguments)
    lists = HostLists(arguments.ok_file, arguments.failed_file, arguments.file)
    sending = Sending(arguments, receivers)
    with lists.written_for(receivers, sending.reasons):
        return sending.run()


def _run_each(arguments: argparse.Namespace) -> int:
    """Send several one after another, and return the exit status of all. Raises WrongInputError before it sends."""
    each = several(arguments)
    receivers = receivers_of(arguments)
    lists = [HostLists(arguments.ok_file, arguments.failed_file, one.file) for one in each]
    sendings = [Sending(one, receivers) for one in each]
    # A host that lacks one of them counts as failed.
    reasons: dict[str, str] = dict(sendings[0].reasons)
    statuses: list[int] = []
    with lists[0].written_for(receivers, reasons):
        missing: dict[str, str] = {}
        for sending in sendings:
            statuses.append(sending.run())
            failed = {name: f"{sending.name}: {reason}" for name, reason in sending.reasons.items()}
            missing = {**failed, **missing}
            if statuses[-1] in (INTERRUPTED, TERMINATED):
                return statuses[-1]
        reasons.clear()
        reasons.update(missing)
    return _of_all(statuses)


def _of_all(statuses: Sequence[int]) -> int:
    return statuses[0] if len(set(statuses)) == 1 else PARTLY


class Sending:
    """The transfer of one file, directory or stream. `reasons`: of hosts that do not have it."""

    def __init__(self, arguments: argparse.Namespace, receivers: Sequence[Receiver]) -> None:
        self._arguments, self._target = arguments, target_of(arguments)
        self.name = self._target.name
        self._names = [name for name, _, _ in receivers]
        settings = replace(round_settings(arguments), buffer=arguments.buffer or 0)
        self._transfer = SendTransfer(arguments, settings, receivers, self._target)
        self.reasons = dict.fromkeys(self._names, "the transfer was not confirmed")

    def run(self) -> int:
        """Send and return the exit status. Raises BlastError, and WrongInputError before it sends."""
        try:
            return self._send()
        except KeyboardInterrupt:
            return self._stopped(INTERRUPTED)
        except asyncio.CancelledError:
            return self._stopped(TERMINATED)
        except WrongInputError:
            raise
        except TransportError as error:
            known = (
                error.reasons if isinstance(error, NoReceiverReachedError) else dict.fromkeys(self._names, str(error))
            )
            self.reasons.update(known)
            return _fail(FAILED, str(error))

    def _send(self) -> int:
        with self._transfer as transfer, self._view() as view:
            sent = asyncio.run(cancelled_by_sigterm(transfer.deliver(view)))
            view.done(sent.results, transfer.unreachable | sent.unreached, sent.refused)
        self.reasons.clear()
        self.reasons.update(reasons_of(self._names, sent, transfer.unreachable))
        if self.reasons and self._target.overwrites:
            sys.stderr.write(f"blast: {_UNDEFINED.format(self._target.path)}\n")
        if len(self.reasons) == len(self._names):
            return FAILED
        return PARTLY if self.reasons else DONE

    def _stopped(self, status: int) -> int:
        so_far = self._transfer.so_far
        for name in so_far.have_it():
            self.reasons.pop(name, None)
        undefined = f"; {_UNDEFINED.format(self._target.path)}" if self._target.overwrites and so_far.whole else ""
        return _fail(status, f"{so_far.sentence()}{undefined}")

    def _view(self) -> AbstractContextManager[ProgressView]:
        if self._arguments.json:
            return ProgressLines(_print)
        return bar(self._transfer.size, self.name, len(self._names), f"{self.name}: " if self._arguments.more else "")


def receivers_of(arguments: argparse.Namespace) -> list[Receiver]:
    """Return the receivers of the command line, then those of the file. Raises WrongInputError."""
    if not arguments.to and arguments.hosts_file is None:
        raise WrongInputError("no receivers: name hosts with --to, or a file of hosts with --hosts-file")
    try:
        listed = [] if arguments.hosts_file is None else read_hosts(arguments.hosts_file)
        receivers = [*(arguments.to or ()), *listed]
        check_count(len(receivers), "--to and --hosts-file")
        check_once(receivers)
    except ValueError as error:
        raise WrongInputError(str(error)) from error
    return receivers


def round_settings(arguments: argparse.Namespace) -> RoundSettings:
    """Return the settings of the options of a command. Raises WrongInputError, CredentialsError."""
    if arguments.order == RACKS and not arguments.controller:
        raise WrongInputError("--order racks needs a controller: name one with --controller, or choose another order")
    asks = arguments.controller and (arguments.via in (AUTO, OPTICAL) or arguments.order == RACKS)
    return RoundSettings(
        controller=arguments.controller if asks else None,
        tls=tls_settings(arguments) if asks else None,
        token=read_token(Path(arguments.token_file)) if asks and arguments.token_file else None,
        sender=arguments.sender,
        optical_address=arguments.optical_address,
        via=arguments.via,
        multicast=MulticastChoice(
            groups=arguments.groups or GroupRange(),
            interface_address=arguments.multicast_address,
            hops=arguments.hops,
            dscp=arguments.dscp,
            max_rate=arguments.max_rate or UNLIMITED,
        ),
        order=arguments.order,
        slowest_rate=arguments.slowest,
        node_timeout=arguments.node_timeout or NODE_TIMEOUT,
        network=arguments.network,
        trees=arguments.trees,
        priority=arguments.priority,
        pending_timeout=arguments.pending_timeout,
        credentials=agent_credentials(arguments),
        sealed=arguments.sealed,
        engine=arguments.engine,
    )


def agent_credentials(arguments: argparse.Namespace) -> Credentials:
    """Return the credentials for the agents. Raises WrongInputError, SettingsError."""
    files = (arguments.agent_cert, arguments.agent_key, arguments.agent_ca)
    if arguments.secret_file is not None and any(files):
        raise WrongInputError("--secret-file and --agent-cert exclude each other: give one of them")
    secret_file = arguments.secret_file or (None if any(files) else os.environ.get(SECRET_VARIABLE)) or None
    if secret_file is not None:
        return SharedSecret(read_secret(Path(secret_file)))
    if not any(files):
        return None
    if not all(files):
        raise WrongInputError("--agent-cert, --agent-key and --agent-ca need each other: give all three")
    refuse_readable_by_others(arguments.agent_key)
    return TlsFiles(*files)


def _print(line: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


def _fail(status: int, sentence: str) -> int:
    sys.stderr.write(f"blast: {sentence}\n")
    return status
