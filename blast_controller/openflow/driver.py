"""The daemon's door to the ToRs: commands in from any thread, events out on one thread of the driver's own."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from blast_controller.core.commands import SetForwarding
from blast_controller.openflow.app import ForwardingApplication
from blast_controller.openflow.framework import EchoProbe, Fatal, Server, ending_the_process
from blast_controller.openflow.messages import encode
from blast_controller.openflow.probe import MOST_BYTES
from blast_controller.openflow.rules import RuleSettings
from blast_controller.openflow.session import Terms
from blast_controller.openflow.steps import Steps
from blast_controller.openflow.vocabulary import (
    Command,
    Connected,
    Effect,
    Event,
    HangUp,
    Input,
    Lost,
    Probe,
    Read,
    Transmit,
)

LOG = logging.getLogger(__name__)
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
        refuses us, and one that we take over tells its controller so; of equal ones the last to connect wins.

    Raises ValueError for a group network or a generation that is none, OSError if the address cannot be listened on.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - each is a fact of the installation
        self,
        listen: tuple[str, int],
        settings: RuleSettings,
        optical_ports: Mapping[int, Sequence[int]],
        group_network: str,
        on_event: Callable[[Event], None],
        fatal: Fatal,
        step_timeout: float = 2.0,
        probe: EchoProbe | None = None,
        generation: int = 0,
    ) -> None:
        if not 0 <= generation <= LAST_GENERATION:
            raise ValueError(f"generation is {generation}, but must fit in 64 bits")
        terms = Terms(settings, generation, step_timeout)
        self._steps = Steps(terms, optical_ports, _multicast_network(group_network))
        self._on_event = on_event
        self._fatal = fatal
        self._inbox: queue.Queue[Input | None] = queue.Queue()
        self._worker = threading.Thread(target=self._run, name="openflow-steps", daemon=True)
        self._server = Server(listen, fatal, probe)

    @property
    def port(self) -> int:
        """The TCP port listened on."""
        return self._server.port

    def start(self) -> None:
        """Accept switches."""
        self._worker.start()
        self._server.start(ForwardingApplication, self._inbox.put)

    def apply(self, command: SetForwarding) -> None:
        """Begin a change and return at once; `on_event` gets one StepConfirmed or StepFailed per (reservation, step).

        An absent ToR fails its steps at once, a forward that no rule can express fails its step.
        """
        self._inbox.put(Command(command, time.monotonic()))

    def read(self, datapath: int) -> None:
        """Read a ToR's rules after all that was applied before, and mend what is the driver's own; return at once.

        The driver's own are the guards, and rules with our magic that are no forwards; what is right is not touched.
        `on_event` gets one TableObserved, or DeviceDown if the ToR does not answer; nothing for a ToR that is away.
        """
        self._inbox.put(Read(datapath, mend=True))

    def look(self, datapath: int) -> None:
        """Like `read`, but write nothing at all."""
        self._inbox.put(Read(datapath, mend=False))

    def probe(self, datapath: int, port: int, payload: bytes) -> None:
        """Send a probe frame out of a port and return at once.

        Wherever it enters an optical port of one of our ToRs, `on_event` gets a ProbeSeen with its payload. Nothing is
        sent to a ToR that is away. A packet network that floods into fibres lets hosts forge probes, so let the payload
        hold something that nobody can guess. Raises ValueError for a payload that does not fit into a frame.
        """
        if len(payload) > MOST_BYTES:
            raise ValueError(f"a probe of {len(payload)} bytes is longer than {MOST_BYTES}")
        self._inbox.put(Probe(datapath, port, payload))

    def stop(self) -> None:
        """Close every connection; the ToRs keep their rules, unanswered steps stay unanswered."""
        if self._worker.is_alive():
            self._inbox.put(None)
            self._worker.join()
        self._server.stop()

    def _run(self) -> None:
        with ending_the_process(self._fatal):
            while self._turn():
                pass

    def _turn(self) -> bool:
        try:
            happened = self._inbox.get(timeout=self._patience())
        except queue.Empty:
            self._act(self._steps.expire(time.monotonic()))
            return True
        if happened is None:
            return False
        now = time.monotonic()
        if isinstance(happened, Connected) and not self._steps.knows(happened.datapath):
            LOG.warning("ignored datapath %016x: no rack in the configuration names it", happened.datapath)
        self._act(self._steps.receive(happened, now))
        self._act(self._steps.expire(now))
        return True

    def _patience(self) -> float | None:
        deadline = self._steps.next_deadline()
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    def _act(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(session):
                    self._transmit(session, effect)
                case HangUp(session, reason):
                    LOG.warning("closed a switch's connection: %s", reason)
                    self._close(session)
                case event:
                    self._on_event(event)

    def _transmit(self, session: Any, message: Transmit) -> None:
        if not session.transmit(encode(session, message.messages)):
            self._inbox.put(Lost(session, "its connection is closing"))

    @staticmethod
    def _close(session: Any) -> None:
        session.hang_up()


def _multicast_network(text: str) -> IPv4Network:
    network = IPv4Network(text)
    if not network.is_multicast:
        raise ValueError(f"group network {text} is not a range of IPv4 multicast addresses")
    return network
