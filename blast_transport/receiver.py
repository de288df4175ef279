"""A receiving process for a lab or a test: an agent without a configuration file, which takes files into one directory.

It asks nobody who they are, so it belongs on loopback or in a network of one's own; `blast agent` is for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from blast_transport.agent.connection import Admission
from blast_transport.agent.endpoint import Endpoint
from blast_transport.agent.errors import CannotListenError
from blast_transport.agent.permissions import Permissions
from blast_transport.agent.reporting import Reporter
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import AgentSection, FolderSection, Settings
from blast_transport.agent.targets import Targets, session_factory
from blast_transport.errors import WrongInputError
from blast_transport.optical.interface import interface_mtu, open_group_socket
from blast_transport.report import Listening, ReceiverEvent
from blast_transport.session.receiver_core import ReceiverTimings
from blast_transport.session.receiver_session import GroupOpener, Surroundings


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """`listen` is (address, port) on the packet network, port 0 for any free one; files go to `directory`.

    `interface_address` is the address of the interface on the light path, None without one. With `fsync` a file is on
    disk before it is confirmed; `highest_rate` in bits/s is the most that this host wants to take.
    """

    listen: tuple[str, int]
    directory: Path
    interface_address: str | None = None
    fsync: bool = False
    highest_rate: float | None = None
    timings: ReceiverTimings = field(default_factory=ReceiverTimings)
    open_group: GroupOpener = open_group_socket


class Receiver:
    """Receives files until `stop` is called.

    `emit` is called with every event, in some thread; `address` is where senders connect. A context manager. Raises
    WrongInputError if a setting cannot be used.
    """

    def __init__(self, settings: ReceiverSettings, emit: Callable[[ReceiverEvent], None]) -> None:
        if not settings.directory.is_dir():
            raise WrongInputError(f"{settings.directory} is not a directory; create it first")
        if settings.interface_address is not None:
            interface_mtu(settings.interface_address)
        listen = AgentSection(Endpoint(*settings.listen), settings.interface_address)
        agent = Settings(listen, folder=(FolderSection("files", settings.directory.absolute()),))
        surroundings = Surroundings(
            target_of=Targets(Permissions(agent)),
            emit=emit,
            interface_address=settings.interface_address,
            fsync=settings.fsync,
            highest_rate=settings.highest_rate,
            timings=settings.timings,
            open_group=settings.open_group,
        )
        self._emit = emit
        try:
            self._server = AgentServer(agent, Admission(None), session_factory(surroundings), Reporter())
        except CannotListenError as error:
            raise WrongInputError(str(error).partition(";")[0]) from error
        self.address: tuple[str, int] = (self._server.endpoint.host, self._server.endpoint.port)

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self) -> None:
        """Serve until `stop`."""
        self._emit(Listening(*self.address))
        self._server.run()

    def stop(self) -> None:
        """Make `run` return; from any thread or signal handler."""
        self._server.stop("the receiver was stopped")
