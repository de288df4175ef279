"""The daemon's door to the ToRs: commands in from any thread, events out on the thread that serves the switches."""

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
from blast_controller.openflow.server import Connection, EchoProbe, Server
from blast_controller.openflow.steps import Steps
from blast_controller.openflow.vocabulary import (
    Command,
    Connected,
    Effect,
    Event,
    Follow,
    HandshakeFailed,
    HangUp,
    Input,
    Lead,
    Lost,
    Probe,
    Read,
    RejectCall,
    Terms,
    Transmit,
)
from blast_controller.serving.tls import TlsSettings

LOG = logging.getLogger(__name__)
STRANGERS = 64
"""Connections of whoever is none of our ToRs, beside two of each ToR."""
LAST_GENERATION = 0xFFFF_FFFF_FFFF_FFFF


class OpenFlowDriver:
    """Carries out SetForwarding on the ToRs that connect to it.

    Parameters
    ----------
    listen : address and port to listen on; port 0 means any free one (see `port`).
    settings : where our rules live on a ToR.
    optical_ports : the optical ports of each datapath id that is ours. Others may connect but are never written to.
    group_network : the range of group addresses (IPv4, multicast), dropped wherever no forward says otherwise.
    on_event : called on the driver's thread, one event at a time. DeviceUp means: we are the ToR's master, it holds
        the guards, and of our forwards exactly those of the event, whoever wrote them and when; a PortChanged for
        each optical port follows. DeviceDown comes before the failures of the steps that the ToR left unanswered,
        and also, once, for a ToR that never comes up because it refuses us.
    fatal : called with the exception when a thread of the driver fails; must end the process.
    step_timeout : seconds from `apply` to the barrier reply.
    probe : how a silent ToR is noticed.
    generation : 0 to 2^64 - 1, larger in every later run on this fabric. A ToR that knows a controller of a larger one
        refuses us, and one that we take over tells its controller so; of equal ones the last to connect wins. None:
        another controller leads; ToRs are connected, and nothing is written to them, until `lead`.
    tls : ToRs connect by TLS and nothing else; None: by plain TCP.
    certificates : for each datapath the name that its certificate must bear (common or DNS name); None: any will do.
    strangers : connections that may be open beside those of the ToRs.

    Raises ValueError for a group network or a generation that is none, OSError if the address cannot be listened on,
    BadTlsFile if a certificate or key cannot be used.
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
        tls: TlsSettings | None = None,
        certificates: Mapping[DatapathId, str] | None = None,
        strangers: int = STRANGERS,
    ) -> None:
        self._settings, self._step_timeout = settings, step_timeout
        terms = None if generation is None else self._terms(settings, generation)
        self._steps = Steps(terms, optical_ports, _multicast_network(group_network), certificates)
        self._on_event = on_event
        self._fatal = fatal
        self._inbox: deque[Input] = deque()
        self._at_work = self._stopped = False
        self._alarm: asyncio.TimerHandle | None = None
        self._server = Server(listen, fatal, probe, tls, strangers + 2 * len(optical_ports))
        self._server.stalled = self._stalled

    @property
    def port(self) -> int:
        """The TCP port listened on."""
        return self._server.port

    def start(self) -> None:
        """Accept switches."""
        self._server.start(ForwardingApplication, self._heard)

    def connected(self) -> int:
        """How many ToRs have a connection to us, whoever leads; from any thread."""
        return self._steps.connected

    def follow(self, generation: int) -> None:
        """A controller of this generation leads: ToRs that connect from now on are told so."""
        self._put(Follow(generation))

    def lead(self, generation: int, epoch: int) -> None:
        """Make every ToR ours, those that are connected at once; `epoch` (16 bits) stands in the cookies from here on.

        Raises ValueError for a generation or an epoch that does not fit.
        """
        self._put(Lead(self._terms(replace(self._settings, epoch=epoch), generation)))

    def _terms(self, settings: RuleSettings, generation: int) -> Terms:
        if not 0 <= generation <= LAST_GENERATION:
            raise ValueError(f"generation is {generation}, but must fit in 64 bits")
        return Terms(settings, generation, self._step_timeout)

    def reload_certificate(self, tls: TlsSettings) -> None:
        """Show ToRs that connect from now on this certificate; whether TLS is spoken stays. Raises BadTlsFile."""
        self._server.reload_certificate(tls)

    def apply(self, command: SetForwarding) -> None:
        """Begin a change and return at once; `on_event` gets one StepConfirmed or StepFailed per (reservation, step).

        An absent ToR fails its steps at once, a forward that no rule can express fails its step.
        """
        self._put(Command(command, time.monotonic()))

    def read(self, datapath: DatapathId) -> None:
        """Read a ToR's rules after all that was applied before, and mend what is the driver's own; return at once.

        The driver's own are the guards, and rules with our magic that are no forwards; what is right is not touched.
        `on_event` gets one TableObserved, or DeviceDown if the ToR does not answer; nothing for a ToR that is away.
        """
        self._put(Read(datapath, mend=True))

    def look(self, datapath: DatapathId) -> None:
        """Like `read`, but write nothing at all."""
        self._put(Read(datapath, mend=False))

    def probe(self, datapath: DatapathId, port: int, payload: bytes) -> None:
        """Send a probe frame out of a port and return at once.

        Wherever it enters an optical port of one of our ToRs, `on_event` gets a ProbeSeen with its payload. Nothing is
        sent to a ToR that is away. A packet network that floods into fibers lets hosts forge probes, so let the payload
        hold something that nobody can guess. Raises ValueError for a payload that does not fit into a frame.
        """
        if len(payload) > MAX_BYTES:
            raise ValueError(f"a probe of {len(payload)} bytes is longer than {MAX_BYTES}")
        self._put(Probe(datapath, port, payload))

    def stop(self) -> None:
        """Close every connection; the ToRs keep their rules, unanswered steps stay unanswered."""
        self._stopped = True
        self._server.stop()

    def _put(self, wanted: Input) -> None:
        self._inbox.append(wanted)
        # With more in it, somebody who came before has called already, or it is being emptied.
        if len(self._inbox) == 1:
            self._server.soon(self._empty)

    def _heard(self, happened: Input) -> None:
        if isinstance(happened, Connected) and not self._steps.knows(happened.datapath):
            LOG.warning("ignored datapath %016x: no rack in the configuration names it", happened.datapath)
        self._inbox.append(happened)
        self._empty()

    def _stalled(self, connection: Connection, reason: str) -> None:
        if connection.id is not None:
            self._heard(HandshakeFailed(connection, connection.id, connection.names, reason))

    def _empty(self) -> None:
        self._turn(())

    def _turn(self, effects: Iterable[Effect]) -> None:
        """Act, and take what is there, one by one: what comes of taking one may be heard at once, and comes after."""
        if self._at_work or self._stopped:
            return
        self._at_work = True
        with ending_the_process(self._fatal):
            self._act(effects)
            while self._inbox:
                happened = self._inbox.popleft()
                self._act(self._steps.receive(happened, time.monotonic()))
                if isinstance(happened, Connected) and self._steps.serves(happened.session):
                    self._server.settle(happened.session)
            self._set_alarm()
        self._at_work = False

    def _set_alarm(self) -> None:
        deadline = self._steps.next_deadline()
        if deadline is None or (self._alarm is not None and self._alarm.when() <= deadline):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._server.loop.call_at(deadline, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._turn(self._steps.expire(time.monotonic()))

    def _act(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(session):
                    self._transmit(session, effect)
                case HangUp(session, reason):
                    # The core is told why, and of the same reason only once; the ToR may be back every second.
                    LOG.debug("closed a switch's connection: %s", reason)
                    self._close(session)
                case RejectCall(session, reason):
                    LOG.warning("closed the connection from %s: it %s", getattr(session, "address", "?"), reason)
                    self._close(session)
                case event:
                    self._on_event(event)

    def _transmit(self, session: Any, message: Transmit) -> None:
        if not session.transmit(encode(session, message.messages)):
            self._inbox.append(Lost(session, "its connection is closing"))

    @staticmethod
    def _close(session: Any) -> None:
        session.hang_up()


def _multicast_network(text: str) -> IPv4Network:
    network = IPv4Network(text)
    if not network.is_multicast:
        raise ValueError(f"group network {text} is not a range of IPv4 multicast addresses")
    return network
