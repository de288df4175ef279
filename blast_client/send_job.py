"""What `blast send` does: opens the source, finds the agents, and sends by the way that was asked for."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from blast_client.failures import DONE, FAILED, PARTLY, WRONG_USE
from blast_client.options import tls_settings
from blast_client.round import Round, RoundResult, RoundSettings
from blast_client.send_progress import ProgressLines, ProgressView, bar
from blast_client.send_stopped import INTERRUPTED, TERMINATED, SoFar, cancelled_by_sigterm
from blast_client.send_words import RACKS, STREAM
from blast_client.tls import read_token
from blast_transport.base.errors import TransportError, WrongInputError
from blast_transport.base.report import Progress
from blast_transport.credentials.material import Credentials, SharedSecret, read_secret, refuse_readable_by_others
from blast_transport.credentials.tls import TlsFiles
from blast_transport.session.settings import Destination
from blast_transport.store.source import Source, StreamSource, opened_file
from blast_transport.wire.carriers import PIPELINE, TREES, UNICAST
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
            sent = asyncio.run(cancelled_by_sigterm(job.deliver(view)))
            view.done(sent.results, job.unreachable | sent.unreached, sent.refused)
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, so_far.sentence())
    except asyncio.CancelledError:
        return _fail(TERMINATED, so_far.sentence())
    except WrongInputError as error:
        return _fail(WRONG_USE, str(error))
    except TransportError as error:
        return _fail(FAILED, str(error))
    complete = sum(result.complete for result in sent.results)
    if complete == 0:
        return FAILED
    return DONE if complete == len(arguments.to) else PARTLY


class _Job:
    """One `blast send`. Raises WrongInputError, TransportError."""

    def __init__(self, arguments: argparse.Namespace, stack: ExitStack, so_far: SoFar) -> None:
        self.arguments, self._so_far = arguments, so_far
        self.unreachable: dict[str, str] = {}
        self.source = stack.enter_context(_opened(arguments.file))
        self._settings = round_settings(arguments)
        self._receivers = list(arguments.to)
        if arguments.ssh:
            self._start_agents(stack)

    @property
    def size(self) -> int | None:
        """Bytes to send, None if nobody knows."""
        return self.source.size if self.source.size is not None else self.arguments.bytes

    async def deliver(self, view: ProgressView) -> RoundResult:
        """Send."""

        def report(receivers: Sequence[str], progress: Progress) -> None:
            self._so_far.note(receivers, progress.complete)
            view.report(progress)

        destination = _destination(self.arguments, self._so_far.name)
        return await Round(self._receivers, self._settings).deliver(self.source, destination, report, self.size)

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
        agents = stack.enter_context(
            started_agents([name for name, _, _ in self._receivers], arguments.ssh_folder, options)
        )
        self._settings = replace(self._settings, credentials=agents.secret, suite=agents.suite)
        self.unreachable = dict(agents.failed)
        self._receivers = list(agents.addresses)
        if not self._receivers:
            raise TransportError("; ".join(f"{name}: {reason}" for name, reason in self.unreachable.items()))


def round_settings(arguments: argparse.Namespace) -> RoundSettings:
    """What the options of a command say. Raises WrongInputError, BadCredentials."""
    asks = arguments.via not in (PIPELINE, TREES, UNICAST) or arguments.order == RACKS
    return RoundSettings(
        controller=arguments.controller if asks else None,
        tls=tls_settings(arguments) if asks else None,
        token=read_token(Path(arguments.token_file)) if asks and arguments.token_file else None,
        sender=arguments.sender,
        light_address=arguments.light_address,
        via=arguments.via,
        order=arguments.order,
        slowest_rate=arguments.slowest,
        network=arguments.network,
        trees=arguments.trees,
        priority=arguments.priority,
        patience=arguments.patience,
        credentials=agent_credentials(arguments),
        sealed=arguments.sealed,
    )


@contextmanager
def _opened(written: str) -> Iterator[Source]:
    if written == STREAM:
        with StreamSource(sys.stdin.fileno()) as stream:
            yield stream
    else:
        with opened_file(Path(written)) as file:
            yield file
            file.check_unchanged()


def agent_credentials(arguments: argparse.Namespace) -> Credentials:
    """What proves us to the agents. Raises WrongInputError, SettingsError."""
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


def _print(line: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


def _fail(status: int, sentence: str) -> int:
    sys.stderr.write(f"blast: {sentence}\n")
    return status
