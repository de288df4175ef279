"""Receiving process for a lab or a test: an agent without a configuration file, which writes files into one directory.

On loopback it needs no authentication; elsewhere it requires a secret, as `blast agent` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from blast_base.endpoint import Endpoint
from blast_transport.agent.permissions import Permissions
from blast_transport.agent.reporting import Reporter
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import AgentSection, FolderSection, Settings
from blast_transport.agent.targets import Targets, session_factory
from blast_transport.base.engines import AUTO, check_engine
from blast_transport.base.errors import CannotListenError, WrongInputError
from blast_transport.base.report import Listening, ReceiverEvent
from blast_transport.credentials.admission import Admission
from blast_transport.credentials.material import Credentials
from blast_transport.datagrams.interface import check_optical_interface, open_group_socket
from blast_transport.links.chain_source import node_dialer
from blast_transport.session.receiver_core import ReceiverTimings
from blast_transport.session.receiver_session import HostResources
from blast_transport.transports.receiving import GroupOpener


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """Settings of the receiver.

    `listen` is (address, port) on the packet network, port 0 for any free one; files go to `directory`.
    `interface_address` is the address of the interface on the optical network, None without one. With `fsync` a file is
    on disk before it is confirmed; `max_rate` is a limit in bits/s. Clients prove `credentials`; without them only this
    machine may connect. `engine` verifies and stores data.
    """

    listen: tuple[str, int]
    directory: Path
    interface_address: str | None = None
    fsync: bool = True
    max_rate: float | None = None
    timings: ReceiverTimings = field(default_factory=ReceiverTimings)
    open_group: GroupOpener = open_group_socket
    credentials: Credentials = None
    engine: str = AUTO


class Receiver:
    """Receiver of files until `stop` is called.

    `emit` is called with every event, in some thread; `address` is where senders connect. A context manager. Raises
    WrongInputError if a setting cannot be used.
    """

    def __init__(self, settings: ReceiverSettings, emit: Callable[[ReceiverEvent], None]) -> None:
        if not settings.directory.is_dir():
            raise WrongInputError(f"{settings.directory} is not a directory; create it first")
        if settings.interface_address is not None:
            check_optical_interface(settings.interface_address)
        endpoint, credentials = Endpoint(*settings.listen), settings.credentials
        if credentials is None and not endpoint.is_loopback:
            raise WrongInputError(
                f"{endpoint} is reachable from other machines, which could then write here; set --secret-file,"
                " or run `blast agent`"
            )
        listen = AgentSection(endpoint, settings.interface_address)
        admission = Admission(credentials)
        agent = Settings(listen, folder=(FolderSection("files", settings.directory.absolute()),))
        surroundings = HostResources(
            target_of=Targets(Permissions(agent)),
            emit=emit,
            interface_address=settings.interface_address,
            fsync=settings.fsync,
            max_rate=settings.max_rate,
            timings=settings.timings,
            open_group=settings.open_group,
            connect=node_dialer(credentials, admission),
            engine=check_engine(settings.engine),
        )
        self._emit = emit
        try:
            factory = session_factory(surroundings)
            self._server = AgentServer(agent, admission, factory, Reporter(), surroundings.connect)
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
