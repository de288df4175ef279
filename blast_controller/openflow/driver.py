"""The daemon's interface to the ToRs: commands from any thread, events on the thread that serves the switches."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

from blast_controller.core.model.commands import SetForwarding
from blast_controller.core.model.identifiers import DatapathId
from blast_controller.openflow.app import ForwardingApplication
from blast_controller.openflow.framework import Fatal, ending_the_process
from blast_controller.openflow.messages import encode
from blast_controller.openflow.probe import MAX_BYTES
from blast_controller.openflow.rules import RuleSettings
from blast_controller.openflow.server import EchoProbe, Server, TorConnection
from blast_controller.openflow.steps import ForwardingSteps
from blast_controller.openflow.vocabulary import (
    ChangeRequested,
    Connected,
    Effect,
    Event,
    Follow,
    HandshakeFailed,
    HangUp,
    Input,
    Lead,
    MasterTerms,
    Numbered,
    ProbeRequested,
    Read,
    RejectCall,
    SessionLost,
    Transmit,
)
from blast_controller.serving.loop_thread import LoopThread
from blast_controller.serving.tls import ServerTlsSettings

LOG = logging.getLogger(__name__)
SPARE_CONNECTIONS = 64
"""Connections of peers that are not configured ToRs, beside two of each ToR."""
LAST_GENERATION = 0xFFFF_FFFF_FFFF_FFFF
"""Generations have 64 bits (OpenFlow 1.3, section 7.3.9)."""


class OpenFlowDriver:
    """Executes SetForwarding on the ToRs that connect to it.

    Parameters
    ----------
    listen : address and port to listen on; port 0 means any free one (see `port`).
    settings : tables and priorities of the rules on a ToR.
    optical_ports : the optical ports of each configured datapath. Others may connect but are never written to.
    group_network : the range of group addresses (IPv4, multicast), dropped unless a forward matches.
    on_event : called on the driver's thread, one event at a time. DeviceConnected means: this controller is the ToR's
        master; the ToR has the guards and exactly the forwards of the event, whichever run wrote them; a PortChanged
        for each optical port follows. DeviceDisconnected precedes the failures of the steps that the ToR left
        unanswered, and is also sent, once, for a ToR that never comes up because it refuses this controller.
    fatal : called with the exception when a thread of the driver fails; must end the process.
    step_timeout : seconds from `apply` to the barrier reply.
    probe : the settings of liveness probes.
    generation : 0 to 2^64 - 1, larger in every later run on this fabric. A ToR that knows a controller of a larger one
        refuses this controller, and a ToR that is taken over notifies its controller; of equal ones the last to connect
        wins. None: a standby; ToRs are connected, and nothing is written to them, until `lead`.
    tls : ToRs connect by TLS only; None: by plain TCP.
    certificates : for each datapath the name that its certificate must have (common or DNS name); None: any.
    spare_connections : the limit of open connections beside those of the ToRs.
    io : the loop to serve on; None: one of its own.

    Raises ValueError for an invalid group network or generation, OSError if the address cannot be listened on,
    TlsFileError if a certificate or key cannot be used.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - each is a fact of the installation
        self,
        listen: tuple[str, int],
        settings: RuleSettings,
        optical_ports: Mapping[DatapathId, Sequence[int]],
        group_network: str,
        on_event: Callable[[Event], None],
        fatal: Fatal,
        step_timeout: float = 2.0,
        probe: EchoProbe | None = None,
        generation: int | None = 0,
        tls: ServerTlsSettings | None = None,
        certificates: Mapping[DatapathId, str] | None = None,
        spare_connections: int = SPARE_CONNECTIONS,
        io: LoopThread | None = None,
    ) -> None:
        self._settings, self._step_timeout = settings, step_timeout
        terms = None if generation is None else self._terms(settings, generation)
        self._steps = ForwardingSteps(terms, optical_ports, _multicast_network(group_network), certificates)
        self._on_event = on_event
        self._fatal = fatal
        self._inbox: deque[Input] = deque()
        self._unsent: dict[Any, list[Numbered]] = {}
        """Messages by session, until the inbox is empty: one write for all commands to a ToR that came together."""
        self._at_work = self._stopped = False
        self._alarm: asyncio.TimerHandle | None = None
        self._server = Server(listen, fatal, probe, tls, spare_connections + 2 * len(optical_ports), io)
        self._server.stalled = self._stalled

    @property
    def port(self) -> int:
        """Return the TCP port listened on."""
        return self._server.port

    def start(self) -> None:
        """Accept switches."""
        self._server.start(ForwardingApplication, self._received)

    def connected(self) -> int:
        """Return the number of ToRs with a connection, as leader or standby; from any thread."""
        return self._steps.connected

    def follow(self, generation: int) -> None:
        """Follow a leader of this generation: ToRs that connect from now on learn it."""
        self._put(Follow(generation))

    def lead(self, generation: int, epoch: int) -> None:
        """Become the master of every ToR, of connected ones at once; `epoch` (16 bits) is in the cookies from here on.

        Raises ValueError for a generation or an epoch that does not fit.
        """
        self._put(Lead(self._terms(replace(self._settings, epoch=epoch), generation)))

    def _terms(self, settings: RuleSettings, generation: int) -> MasterTerms:
        if not 0 <= generation <= LAST_GENERATION:
            raise ValueError(f"generation is {generation}, but must fit in 64 bits")
        return MasterTerms(settings, generation, self._step_timeout)

    def reload_certificate(self, tls: ServerTlsSettings) -> None:
        """Use this certificate for new connections; TLS cannot be turned on or off. Raises TlsFileError."""
        self._server.reload_certificate(tls)

    def apply(self, command: SetForwarding) -> None:
        """Begin a change and return at once; `on_event` gets one StepConfirmed or StepFailed per (reservation, step).

        An absent ToR fails its steps at once, a forward that no rule can express fails its step.
        """
        self._put(ChangeRequested(command, time.monotonic()))

    def read(self, datapath: DatapathId) -> None:
        """Read a ToR's rules after all previous commands, and repair the driver's own rules; return at once.

        The driver's own rules are the guards, and rules with Blast's magic that are not forwards; correct ones are not
        touched. `on_event` gets one TableObserved, or DeviceDisconnected if the ToR does not answer; nothing for a
        disconnected ToR.
        """
        self._put(Read(datapath, mend=True))

    def look(self, datapath: DatapathId) -> None:
        """Read a ToR's rules like `read`, without any repair."""
        self._put(Read(datapath, mend=False))

    def probe(self, datapath: DatapathId, port: int, payload: bytes) -> None:
        """Send a probe frame from a port and return at once.

        Wherever it enters an optical port of a configured ToR, `on_event` gets a ProbeReceived with its payload.
        Nothing is sent to a disconnected ToR. A packet network that floods into fibers lets hosts forge probes, so the
        payload must contain something unpredictable. Raises ValueError for a payload that does not fit into a frame.
        """
        if len(payload) > MAX_BYTES:
            raise ValueError(f"a probe of {len(payload)} bytes is longer than {MAX_BYTES}")
        self._put(ProbeRequested(datapath, port, payload))

    def stop(self) -> None:
        """Close every connection; the ToRs keep their rules, unanswered steps stay unanswered."""
        self._stopped = True
        self._server.stop()

    def _put(self, required: Input) -> None:
        self._inbox.append(required)
        # If the inbox has more, an earlier caller has scheduled a wakeup, or it is being emptied.
        if len(self._inbox) == 1:
            self._server.soon(self._empty)

    def _received(self, happened: Input) -> None:
        if isinstance(happened, Connected) and not self._steps.knows(happened.datapath):
            LOG.warning("ignored datapath %016x: no rack of the configuration has it", happened.datapath)
        self._inbox.append(happened)
        self._empty()

    def _stalled(self, connection: TorConnection, reason: str) -> None:
        if connection.id is not None:
            self._received(HandshakeFailed(connection, connection.id, connection.names, reason))

    def _empty(self) -> None:
        self._process(())

    def _process(self, effects: Iterable[Effect]) -> None:
        """Execute effects, then the queued inputs one by one, then send the messages that follow from them.

        Effects of an input may cause further inputs, which come later.
        """
        if self._at_work or self._stopped:
            return
        self._at_work = True
        with ending_the_process(self._fatal):
            self._act(effects)
            while self._inbox or self._unsent:
                if self._inbox:
                    self._take(self._inbox.popleft())
                else:
                    self._transmit()
            self._set_alarm()
        self._at_work = False

    def _take(self, happened: Input) -> None:
        self._act(self._steps.receive(happened, time.monotonic()))
        if isinstance(happened, Connected) and self._steps.serves(happened.session):
            self._server.settle(happened.session)

    def _set_alarm(self) -> None:
        deadline = self._steps.next_deadline()
        if deadline is None or (self._alarm is not None and self._alarm.when() <= deadline):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._server.loop.call_at(deadline, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._process(self._steps.expire(time.monotonic()))

    def _act(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(session, messages):
                    self._unsent.setdefault(session, []).extend(messages)
                case HangUp(session, reason):
                    # The core is notified, once for each reason; the ToR may reconnect every second.
                    LOG.debug("closed the connection of a switch: %s", reason)
                    self._close(session)
                case RejectCall(session, reason):
                    LOG.warning("closed the connection from %s: it %s", getattr(session, "address", "?"), reason)
                    self._close(session)
                case event:
                    self._on_event(event)

    def _transmit(self) -> None:
        unsent, self._unsent = self._unsent, {}
        for session, messages in unsent.items():
            if not session.transmit(encode(session, messages)):
                self._inbox.append(SessionLost(session, "its connection is closing"))

    @staticmethod
    def _close(session: Any) -> None:
        session.hang_up()


def _multicast_network(text: str) -> IPv4Network:
    network = IPv4Network(text)
    if not network.is_multicast:
        raise ValueError(f"group network {text} is not a range of IPv4 multicast addresses")
    return network
