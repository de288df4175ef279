"""The only file that names os-ken or ryu: everything else of Blast's OpenFlow part runs on either.

BLAST_OPENFLOW_FRAMEWORK chooses `os-ken` (default; native threads) or `ryu` (4.34 on eventlet). Import this module
before anything that starts threads or opens sockets: under ryu it monkey-patches the standard library.

What the frameworks leave to the application is done here once:

- **A handler's exception** ends os-ken's native event loop without a word (its `TaskExit` is `Exception`). `TaskExit`
  becomes a class of its own here, and `handles` passes every exception of a handler to `fatal`.
- **Dead switches**: the echo probe is off by default, and natively a closed connection is not reported until the
  probe runs, because the thread that closes waits for one that waits for work. `Connection` probes, and reports a
  closed connection at once.
- **Sending**: `transmit` puts a whole batch in one place of the switch's send queue and says whether it was taken.
- **Listening**: the server's own socket, with a backlog for a machine room that connects at once, and any free port.
- **Flow statistics** stay undecoded: each entry of a reply is a `RawEntry`, read by `flow_stats.py`.
- **send_request** waits for ever and is not offered.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

LOG = logging.getLogger(__name__)
BACKLOG = 2048
SHORTEST_ENTRY = 56
FRAMEWORK = os.environ.get("BLAST_OPENFLOW_FRAMEWORK", "os-ken")

Fatal = Callable[[BaseException], None]
"""Ends the process: called with what an event loop of ours died of."""


def _prepare_os_ken() -> None:
    os.environ["OSKEN_HUB_TYPE"] = "native"


def _prepare_ryu() -> None:
    eventlet = importlib.import_module("eventlet")
    eventlet.monkey_patch()
    # ryu imports this name, which eventlet dropped in 0.30.3, and uses it only to compare.
    importlib.import_module("eventlet.wsgi").ALREADY_HANDLED = object()  # type: ignore[attr-defined]


_FRAMEWORKS = {"os-ken": ("os_ken", "OSKenApp", _prepare_os_ken), "ryu": ("ryu", "RyuApp", _prepare_ryu)}
if FRAMEWORK not in _FRAMEWORKS:
    raise ImportError(f"BLAST_OPENFLOW_FRAMEWORK is {FRAMEWORK!r}, but must be one of: {', '.join(_FRAMEWORKS)}")
_PACKAGE, _APPLICATION_CLASS, _prepare = _FRAMEWORKS[FRAMEWORK]
_prepare()


def _module(name: str) -> Any:
    return importlib.import_module(f"{_PACKAGE}.{name}")


# app_manager first: it registers the options that the controller module reads, and breaks a circular import.
_app_manager = _module("base.app_manager")
_controller = _module("controller.controller")
_handler = _module("controller.handler")
_hub = _module("lib.hub")
# What it tells at info is which classes it makes, and nothing that an operator could use.
logging.getLogger(_app_manager.__name__).setLevel(logging.WARNING)
_ofp_handler = _module("controller.ofp_handler")
ofp_event: ModuleType = _module("controller.ofp_event")
ofproto_v1_3: Any = _module("ofproto.ofproto_v1_3")
ofproto_v1_3_parser: Any = _module("ofproto.ofproto_v1_3_parser")

MAIN_DISPATCHER: str = _handler.MAIN_DISPATCHER
DEAD_DISPATCHER: str = _handler.DEAD_DISPATCHER
_ApplicationBase: Any = getattr(_app_manager, _APPLICATION_CLASS)
_Datapath: Any = _controller.Datapath
_OFPHandler: Any = _ofp_handler.OFPHandler


class _EndOfTask(BaseException):
    """Never raised: stands in for os-ken's TaskExit so that no ordinary exception is taken for it."""


if _PACKAGE == "os_ken":
    _hub.TaskExit = _EndOfTask


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An ofp_flow_stats as it came. `length` is in bytes."""

    data: bytes
    length: int

    @classmethod
    def parser(cls, buffer: bytes, offset: int) -> RawEntry:
        """What the framework's reply calls to take an entry. Raises ValueError for a length that cannot be."""
        length = int.from_bytes(buffer[offset : offset + 2])
        if not SHORTEST_ENTRY <= length <= len(buffer) - offset:
            raise ValueError(f"a flow statistics entry of {length} bytes in the last {len(buffer) - offset}")
        return cls(bytes(buffer[offset : offset + length]), length)


ofproto_v1_3_parser.OFPFlowStatsReply.cls_stats_body_cls = RawEntry

Handler = TypeVar("Handler", bound=Callable[..., None])


class Application(_ApplicationBase):  # type: ignore[misc]
    """Base class of OpenFlow 1.3 applications; its handlers are made by `handles`."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, fatal: Fatal) -> None:
        super().__init__()
        self.fatal = fatal


def handles(event: Any, states: Sequence[str]) -> Callable[[Handler], Handler]:
    """Make a method of an Application the handler of `event` for connections in `states`."""

    def decorate(method: Handler) -> Handler:
        @functools.wraps(method)
        def guarded(application: Application, received: Any) -> None:
            with ending_the_process(application.fatal):
                method(application, received)

        decorated: Handler = _handler.set_ev_cls(event, list(states))(guarded)
        return decorated

    return decorate


class ending_the_process:  # noqa: N801 - reads as a statement: `with ending_the_process(fatal): …`
    """Log whatever leaves the block and hand it to `fatal`: nothing of ours goes on after a failed handler."""

    def __init__(self, fatal: Fatal) -> None:
        self._fatal = fatal

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        LOG.critical("the OpenFlow part failed and ends the process", exc_info=error)
        self._fatal(error)
        return True


@dataclass(frozen=True, slots=True)
class EchoProbe:
    """A switch that leaves `unanswered` echo requests unanswered, one every `interval` seconds, counts as dead."""

    interval: float = 3.0
    unanswered: int = 5


class Connection(_Datapath):  # type: ignore[misc]
    """The connection of one switch. Compare by identity: the same switch may be back before this one is dead."""

    def __init__(self, stream: socket.socket, address: Any, probe: EchoProbe) -> None:
        super().__init__(stream, address)
        self.echo_request_interval = probe.interval
        self.max_unreplied_echo_requests = probe.unanswered

    def transmit(self, messages: bytes) -> bool:
        """Queue whole OpenFlow messages to be sent together; False if the connection is closing."""
        try:
            return bool(self.send(messages))
        except AttributeError:
            # The framework tests for its queue and then uses it; the sender may take it away in between.
            return False

    def hang_up(self) -> None:
        """Close the connection: reported as dead at once, and the threads that serve it end."""
        self.close()
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.transmit(b"")  # the sender waits for work and would never see the closed connection

    def _recv_loop(self) -> None:
        try:
            super()._recv_loop()
        finally:
            self.hang_up()


class _Handshake(_OFPHandler):  # type: ignore[misc]
    """The framework's own application for hello, features and echo, without its listening socket."""

    def start(self) -> None:
        _ApplicationBase.start(self)


class Server:
    """Listens for switches and runs one application on them, in threads of its own.

    It listens from construction on (`port` is the real port when 0 was asked for) and accepts from `start` on. One
    server runs in a process at a time, because the frameworks register applications globally. Raises OSError if the
    address cannot be listened on.
    """

    def __init__(self, listen: tuple[str, int], fatal: Fatal, probe: EchoProbe | None = None) -> None:
        self._fatal = fatal
        self._probe = probe or EchoProbe()
        self._listener = socket.create_server(listen, backlog=BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._applications = _app_manager.AppManager()
        self._connections: set[Connection] = set()
        self._stopping = False
        self._acceptor = threading.Thread(target=self._accept, name="openflow-accept", daemon=True)

    def start(self, application: type[Application], *arguments: object) -> None:
        """Make `application(*arguments, fatal)` and accept switches."""
        self._applications.instantiate(_Handshake)
        self._applications.instantiate(application, *arguments, self._fatal)
        for running in self._applications.applications.values():
            running.start()
        self._acceptor.start()

    def stop(self) -> None:
        """Close the listening socket and every connection, and end the applications."""
        self._stopping = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        if self._acceptor.is_alive():
            self._acceptor.join(timeout=5.0)
        self._listener.close()
        for connection in list(self._connections):
            connection.hang_up()
        self._applications.close()

    def _accept(self) -> None:
        with ending_the_process(self._fatal):
            while not self._stopping:
                try:
                    stream, address = self._listener.accept()
                except OSError:
                    if self._stopping:
                        return
                    raise
                # Daemon threads, and so are the ones that the framework starts from them.
                threading.Thread(target=self._serve, args=(stream, address), daemon=True).start()

    def _serve(self, stream: socket.socket, address: Any) -> None:
        connection: Connection | None = None
        try:
            with closing(Connection(stream, address, self._probe)) as connection:
                self._connections.add(connection)
                connection.serve()
        except Exception as error:  # noqa: BLE001 - the top of a thread
            # What reaches it is a switch that sends nonsense.
            LOG.warning("closed the connection from %s: it does not speak OpenFlow 1.3 (%r)", address, error)
        finally:
            stream.close()
            if connection is not None:
                self._connections.discard(connection)
