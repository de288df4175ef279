"""The only module that imports os-ken or ryu: all other OpenFlow modules are independent of them.

BLAST_OPENFLOW_FRAMEWORK selects `os-ken` (default; native threads) or `ryu` (4.34 on eventlet). Import this module
before anything that starts threads or opens sockets: with ryu it monkey-patches the standard library.

The framework provides the handshake, the messages, and the dispatch to handlers, but not its threads: it runs three for
every switch and one for every application, and a message waits in four queues between them; a hundred switches then
spend a third of a busy controller's time on thread switches, and its event loop ends without a message when a handler
fails. So `dispatch` passes a message to its handlers at once, on the thread that read it (`server.py`), and `handles`
passes every exception of a handler to `fatal`.

**Flow statistics** stay undecoded: each entry of a reply is a `RawEntry`, read by `flow_stats.py`.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

LOG = logging.getLogger(__name__)
HEADER = struct.Struct("!BBHI")
"""version, type, length (of the whole message, in bytes), transaction id (OpenFlow 1.3.5, section A.1)"""
SHORTEST_ENTRY = 56
"""Bytes of a flow entry with an empty match and no instruction (struct ofp_flow_stats)."""
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


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{_PACKAGE}.{name}")


# app_manager first: it registers the options that the controller module reads, and breaks a circular import.
_app_manager = _module("base.app_manager")
_controller = _module("controller.controller")
_handler = _module("controller.handler")
_ofproto_parser = _module("ofproto.ofproto_parser")
# At level info it logs only its classes.
logging.getLogger(_app_manager.__name__).setLevel(logging.WARNING)
# For an undecodable message it logs a traceback, but Blast's server one line.
logging.getLogger(_ofproto_parser.__name__).setLevel(logging.CRITICAL)
_ofp_handler = _module("controller.ofp_handler")
ofp_event = _module("controller.ofp_event")
ofproto_v1_3 = _module("ofproto.ofproto_v1_3")
ofproto_v1_3_parser = _module("ofproto.ofproto_v1_3_parser")

MAIN_DISPATCHER: str = _handler.MAIN_DISPATCHER
DEAD_DISPATCHER: str = _handler.DEAD_DISPATCHER
HANDSHAKE_DISPATCHER: str = _handler.HANDSHAKE_DISPATCHER
if TYPE_CHECKING:
    from os_ken.base.app_manager import OSKenApp as _ApplicationBase
    from os_ken.controller.controller import Datapath as Datapath  # noqa: PLC0414 - handed on
    from os_ken.controller.event import EventBase as EventBase  # noqa: PLC0414 - handed on
    from os_ken.controller.ofp_handler import OFPHandler as _OFPHandler
    from os_ken.ofproto.ofproto_parser import MsgBase as MsgBase  # noqa: PLC0414 - handed on
    from os_ken.ofproto.ofproto_v1_3_parser import OFPPort as OFPPort  # noqa: PLC0414 - handed on
else:
    # ryu calls all but the first the same.
    _ApplicationBase, _OFPHandler = getattr(_app_manager, _APPLICATION_CLASS), _ofp_handler.OFPHandler
    Datapath, EventBase = _controller.Datapath, _module("controller.event").EventBase
    MsgBase, OFPPort = _ofproto_parser.MsgBase, ofproto_v1_3_parser.OFPPort


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An ofp_flow_stats as it came. `length` is in bytes."""

    data: bytes
    length: int

    @classmethod
    def parser(cls, buffer: bytes, offset: int) -> RawEntry:
        """Read an entry; called by the framework's reply parser. Raises ValueError for an impossible length."""
        length = int.from_bytes(buffer[offset : offset + 2])
        if not SHORTEST_ENTRY <= length <= len(buffer) - offset:
            raise ValueError(f"a flow statistics entry of {length} bytes in the last {len(buffer) - offset}")
        return cls(bytes(buffer[offset : offset + length]), length)


ofproto_v1_3_parser.OFPFlowStatsReply.cls_stats_body_cls = RawEntry

Handler = TypeVar("Handler", bound=Callable[..., None])


class _Direct(_ApplicationBase):  # type: ignore[misc]
    """An application without a thread: its handlers run where the event is sent."""

    def _send_event(self, event: EventBase, state: str | None) -> None:
        for handler in self.get_handlers(event, state):
            handler(event)


class RyuApplication(_Direct):
    """Base class of OpenFlow 1.3 applications; its handlers are made by `handles` and must not wait."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, fatal: Fatal) -> None:
        super().__init__()
        self.fatal = fatal

    def barrier_replied(self, connection: Datapath, xid: int) -> None:
        """Handle a barrier reply of a connection that has finished its handshake."""


class _FrameworkHandshake(_Direct, _OFPHandler):  # type: ignore[misc]
    """The framework's own application for hello, features and echo, without its listening socket."""

    application: RyuApplication
    """The only other application."""


class RyuApplications:
    """The framework's application and one of ours. One at a time in a process: frameworks register them globally."""

    def __init__(self, application: type[RyuApplication], *arguments: object) -> None:
        self._manager = _app_manager.AppManager()
        handshake = self._manager.instantiate(_FrameworkHandshake)
        handshake.application = self._manager.instantiate(application, *arguments)

    def close(self) -> None:
        """Let others be registered."""
        self._manager.close()


def dispatch(datapath: Datapath, message: bytes) -> None:
    """Give one whole message to its handlers. Whatever it raises is a switch's that does not speak OpenFlow 1.3."""
    version, kind, length, xid = HEADER.unpack_from(message)
    if kind == ofproto_v1_3.OFPT_BARRIER_REPLY:
        _process_barrier_reply(datapath, xid)
        return
    parsed = _ofproto_parser.msg(datapath, version, kind, length, xid, message)
    if not parsed:
        LOG.warning("ignored an undecodable message of type %d from %s", kind, datapath.address)
        return
    event, state, handshake = ofp_event.ofp_msg_to_ev(parsed), datapath.state, datapath.ofp_brick
    for handler in list(handshake.get_handlers(event, state)):
        handler(event)
    handshake.send_event_to_observers(event, state)


def _process_barrier_reply(datapath: Datapath, xid: int) -> None:
    """Skip the framework: a ToR confirms every change by this message, which consists of its header only."""
    application = datapath.ofp_brick.application
    if datapath.state == MAIN_DISPATCHER:
        with ending_the_process(application.fatal):
            application.barrier_replied(datapath, xid)


def handles(event: type[EventBase], states: Sequence[str]) -> Callable[[Handler], Handler]:
    """Make a method of an Application the handler of `event` for connections in `states`."""

    def decorate(method: Handler) -> Handler:
        @functools.wraps(method)
        def guarded(application: RyuApplication, received: EventBase) -> None:
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
        LOG.critical("OpenFlow failed; the process exits", exc_info=error)
        self._fatal(error)
        return True
