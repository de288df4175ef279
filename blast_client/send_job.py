"""What `blast send` does: opens the source, finds the agents, and sends by the way that was asked for."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from thrift.Thrift import TException

from blast_api.ttypes import MulticastRequest
from blast_client.address import BadAddress
from blast_client.aio import AsyncClient
from blast_client.calls import ControllerUnreachable, milliseconds
from blast_client.delivery import Delivered, deliver
from blast_client.failures import DONE, FAILED, PARTLY, WRONG_USE
from blast_client.in_thread import carried
from blast_client.options import tls_settings
from blast_client.part_sending import PartSent
from blast_client.send_progress import ProgressLines, ProgressView, bar
from blast_client.send_stopped import INTERRUPTED, TERMINATED, SoFar, cancelled_by_sigterm
from blast_client.send_words import GIVEN, NAMES, RACKS, STREAM
from blast_client.sending import send
from blast_client.tls import BadCredentials, read_token
from blast_transport.base.errors import TransportError, WrongInputError
from blast_transport.base.host_order import as_given, by_name, by_racks
from blast_transport.base.report import Progress, TransferResult
from blast_transport.blocks.digests import BEST
from blast_transport.carriers.choices import Chain, Unicast
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import Credentials, SharedSecret, read_secret, refuse_readable_by_others
from blast_transport.credentials.tls import TlsFiles
from blast_transport.links.dialling import Address
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import MOST_DIRECT, Destination, SenderSettings
from blast_transport.store.source import Source, StreamSource, opened_file
from blast_transport.wire.carriers import OPTICAL, PIPELINE, UNICAST
from blast_transport.wire.messages import COMMAND, FILE

_STREAM_NAME = "stdin"


def run_send(arguments: argparse.Namespace) -> int:
    """Send; the exit status. Raises what the client raises."""
    if arguments.file == STREAM and not (arguments.name or arguments.command):
        arguments.name = _name_of_stream()
        sys.stderr.write(f"blast: the stream will be called {arguments.name} there: --as gives it another name\n")
    so_far = SoFar(_file_name(arguments), arguments.file != STREAM and not arguments.command)
    try:
        with ExitStack() as stack:
            job = _Job(arguments, stack, so_far)
            view = stack.enter_context(_view(arguments, job))
            delivered, results = asyncio.run(cancelled_by_sigterm(job.deliver(view)))
            view.done(results, job.unreachable, delivered.refused if delivered else "")
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, so_far.sentence())
    except asyncio.CancelledError:
        return _fail(TERMINATED, so_far.sentence())
    except WrongInputError as error:
        return _fail(WRONG_USE, str(error))
    except TransportError as error:
        return _fail(FAILED, str(error))
    complete = sum(result.complete for result in results)
    if complete == 0:
        return FAILED
    return DONE if complete == len(arguments.to) else PARTLY


class _Job:
    """One `blast send`. Raises WrongInputError, TransportError."""

    def __init__(self, arguments: argparse.Namespace, stack: ExitStack, so_far: SoFar) -> None:
        self.arguments, self._so_far = arguments, so_far
        self.unreachable: dict[str, str] = {}
        self.source = stack.enter_context(_opened(arguments.file))
        self._credentials = _credentials(arguments)
        self._suite = BEST
        self._racks: dict[str, str] = {}
        self.addresses = {name: (name, host, port) for name, host, port in arguments.to}
        if arguments.ssh:
            self._start_agents(stack)

    @property
    def size(self) -> int | None:
        """Bytes to send, None if nobody knows."""
        return self.source.size if self.source.size is not None else self.arguments.bytes

    async def deliver(self, view: ProgressView) -> tuple[Delivered | None, list[TransferResult]]:
        """Send; what became of it by light or chain, and the results."""
        arguments = self.arguments
        carry = self._carrier(view.report)
        if arguments.via in (PIPELINE, UNICAST) or self.size is None:
            if arguments.via == OPTICAL:
                raise WrongInputError("light is granted for a number of bytes: say how many come with --bytes")
            order = [] if arguments.via == UNICAST else await self._order()
            way = Unicast() if arguments.via == UNICAST else self._chain(order)
            return None, [await carried(carry, tuple(self.addresses), Route(way))]
        async with _client(arguments) as client:
            if len(self.addresses) > MOST_DIRECT:
                with suppress(TException, ControllerUnreachable):
                    await self._find_racks(client)
            if arguments.via == OPTICAL:
                parts = await send(client, self._request(may_split=True), carry)
                return None, self._results(parts)
            chain = self._chain(await self._order(client))
            delivered = await deliver(client, self._request(may_split=False), carry, chain)
            return delivered, self._results([delivered.sent])

    def _results(self, parts: Sequence[PartSent]) -> list[TransferResult]:
        for part in parts:
            if part.result is None:
                self.unreachable |= dict.fromkeys(part.receivers, part.reason)
        return [part.result for part in parts if part.result is not None]

    def _carrier(self, report: Callable[[Progress], None]) -> Callable[[Sequence[str], Route], TransferResult]:
        settings = SenderSettings(
            interface_address=self._light_address(),
            sealed=self.arguments.sealed,
            dialer=dialer(self._credentials),
            credentials=self._credentials,
            suite=self._suite,
        )
        destination = _destination(self.arguments, self._so_far.name)

        def carry(receivers: Sequence[str], route: Route) -> TransferResult:
            def note(progress: Progress) -> None:
                self._so_far.note(receivers, progress.complete)
                report(progress)

            addresses = [self.addresses[name] for name in receivers]
            with Sender(addresses, replace(settings, racks=self._racks)) as sender:
                return sender.transmit(self.source, route, destination, note)

        return carry

    def _request(self, *, may_split: bool) -> MulticastRequest:
        arguments = self.arguments
        return MulticastRequest(
            key=f"send-{secrets.token_hex(6)}",
            sender=arguments.sender or socket.gethostname(),
            receivers=list(self.addresses),
            bytes=max(1, self.size or 0),
            priority=arguments.priority,
            patienceMs=None if arguments.patience is None else milliseconds(arguments.patience),
            maySplit=may_split or None,
            mayPause=True,
        )

    async def _order(self, client: AsyncClient | None = None) -> list[str]:
        """The receivers in the order of a pipeline."""
        names, wanted = list(self.addresses), self.arguments.order
        if wanted == GIVEN:
            return as_given(names, names)
        if wanted == NAMES or (client is None and wanted is None):
            return by_name(names)
        try:
            if client is not None:
                await self._find_racks(client)
            else:
                async with _client(self.arguments) as asked:
                    await self._find_racks(asked)
        except (TException, ControllerUnreachable, BadAddress, BadCredentials):
            if wanted == RACKS:
                raise
            return by_name(names)
        return by_racks(self.arguments.sender or socket.gethostname(), names, self._racks)

    async def _find_racks(self, client: AsyncClient) -> None:
        fabric = await client.fabric()
        self._racks = {host: rack.name for rack in fabric.racks for host in rack.hosts}

    def _chain(self, order: list[str]) -> Chain:
        return Chain(tuple(order), self.arguments.slowest)

    def _light_address(self) -> str | None:
        if self.arguments.via in (PIPELINE, UNICAST):
            return None
        return self.arguments.light_address or _own_address(next(iter(self.addresses.values())))

    def _start_agents(self, stack: ExitStack) -> None:
        from blast_transport.remote.start import StartOptions, started_agents

        arguments = self.arguments
        if not arguments.ssh_folder:
            raise WrongInputError("--ssh needs --ssh-folder: where the hosts keep what they receive")
        options = StartOptions(
            user=arguments.ssh_user,
            port=arguments.ssh_port,
            ssh_options=arguments.ssh_options,
            addresses={name: host for name, host, _ in arguments.to},
        )
        agents = stack.enter_context(started_agents(list(self.addresses), arguments.ssh_folder, options))
        self._credentials, self._suite = agents.secret, agents.suite
        self.unreachable = dict(agents.failed)
        self.addresses = {address[0]: address for address in agents.addresses}
        if not self.addresses:
            raise TransportError("; ".join(f"{name}: {reason}" for name, reason in self.unreachable.items()))


def _client(arguments: argparse.Namespace) -> AsyncClient:
    token = read_token(Path(arguments.token_file)) if arguments.token_file else None
    return AsyncClient(arguments.controller, tls=tls_settings(arguments), token=token)


@contextmanager
def _opened(written: str) -> Iterator[Source]:
    if written == STREAM:
        with StreamSource(sys.stdin.fileno()) as stream:
            yield stream
    else:
        with opened_file(Path(written)) as file:
            yield file
            file.check_unchanged()


def _credentials(arguments: argparse.Namespace) -> Credentials:
    files = (arguments.agent_cert, arguments.agent_key, arguments.agent_ca)
    if arguments.secret_file is not None and any(files):
        raise WrongInputError("agents know either a secret or certificates: give --secret-file or --agent-cert")
    if arguments.secret_file is not None:
        return SharedSecret(read_secret(arguments.secret_file))
    if not any(files):
        return None
    if not all(files):
        raise WrongInputError("--agent-cert, --agent-key and --agent-ca belong together: give all three")
    refuse_readable_by_others(arguments.agent_key)
    return TlsFiles(*files)


def _view(arguments: argparse.Namespace, job: _Job) -> Any:
    if arguments.json:
        return ProgressLines(_print)
    return bar(job.size, Path(arguments.file).name, len(arguments.to))


def _destination(arguments: argparse.Namespace, name: str) -> Destination:
    if arguments.command:
        return Destination(arguments.command, COMMAND, file=name)
    return Destination(name, FILE, arguments.folder)


def _file_name(arguments: argparse.Namespace) -> str:
    """What the data is called at a receiver, if nobody says otherwise."""
    return arguments.name or (_STREAM_NAME if arguments.file == STREAM else Path(arguments.file).name)


def _name_of_stream() -> str:
    """One that no file has: what was sent before must not be lost to what nobody gave a name."""
    return f"{_STREAM_NAME}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def _own_address(towards: Address) -> str:
    """The address that packets to a host leave from. Raises WrongInputError for a host that nobody knows."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((towards[1], towards[2]))
            return str(probe.getsockname()[0])
    except OSError as error:
        raise WrongInputError(f"the host {towards[1]} is not known: {error.strerror or error}") from error


def _print(line: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


def _fail(status: int, sentence: str) -> int:
    sys.stderr.write(f"blast: {sentence}\n")
    return status
