"""The transfer of one `blast send`: opens the source, starts agents over SSH if needed, and sends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from blast_client.send.failures import NoReceiverReachedError
from blast_client.send.option_values import STREAM
from blast_client.send.progress import ProgressView
from blast_client.send.receivers import Receiver
from blast_client.send.round import DeliveryRound, RoundResult, RoundSettings
from blast_client.send.stopped import TransferProgress, unless_stopped
from blast_client.send.target import SendTarget, is_folder
from blast_transport.base.report import Progress
from blast_transport.store.sources.folder_source import FolderSource
from blast_transport.store.sources.source import RING_BYTES, Source, StreamSource, opened_file


class SendTransfer:
    """A transfer, as a context manager. `unreachable`: reasons of hosts without an agent; `so_far`: its progress.

    Raises WrongInputError, TransportError.
    """

    def __init__(
        self, arguments: argparse.Namespace, settings: RoundSettings, receivers: Sequence[Receiver], target: SendTarget
    ) -> None:
        self._arguments, self._settings, self._target = arguments, settings, target
        self._receivers = list(receivers)
        self._source: Source | None = None
        self._stack = ExitStack()
        self.unreachable: dict[str, str] = {}
        self.so_far = TransferProgress(target.name, arguments.file != STREAM and target.is_kept)

    def __enter__(self) -> SendTransfer:
        with self._stack as stack:
            self._source = stack.enter_context(_opened(self._arguments.file, self._settings.buffer))
            if self._arguments.ssh:
                self._start_agents()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def size(self) -> int | None:
        """Bytes to send, or None if unknown."""
        known = None if self._source is None else self._source.size
        given: int | None = self._arguments.bytes
        return given if known is None else known

    async def deliver(self, view: ProgressView) -> RoundResult:
        """Send the source to the receivers, and report progress to the view."""
        assert self._source is not None
        if isinstance(self._source, StreamSource):
            self._source.at_end = unless_stopped(self.so_far)

        def report(receivers: Sequence[str], progress: Progress) -> None:
            self.so_far.note(receivers, progress.complete)
            view.report(progress)

        destination = self._target.destination
        return await DeliveryRound(self._receivers, self._settings).deliver(
            self._source, destination, report, self.size
        )

    def _start_agents(self) -> None:
        from blast_client.send.ssh import agents_for

        agents = agents_for(self._arguments, self._receivers, self._target, self._stack)
        self._settings = replace(self._settings, credentials=agents.secret, suite=agents.suite)
        self.unreachable = dict(agents.failed)
        self._receivers = list(agents.addresses)
        if not self._receivers:
            raise NoReceiverReachedError(self.unreachable)


@contextmanager
def _opened(written: str, buffer: int) -> Iterator[Source]:
    if written == STREAM:
        # The blocks that nodes may request again, and the same amount in flight.
        with StreamSource(sys.stdin.fileno(), 2 * buffer or RING_BYTES) as stream:
            yield stream
    elif is_folder(written):
        folder = FolderSource(Path(written))
        yield folder
        folder.check_unchanged()
    else:
        with opened_file(Path(written)) as file:
            yield file
            file.check_unchanged()
