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
from blast_controller.openflow.rules import RuleSettings
from blast_controller.openflow.steps import Command, Connected, Effect, Event, HangUp, Input, Lost, Steps, Transmit

LOG = logging.getLogger(__name__)


class OpenFlowDriver:
    """Carries out SetForwarding on the ToRs that connect to it.

    Parameters
    ----------
    listen : address and port to listen on; port 0 means any free one (see `port`).
    settings : where our rules live on a ToR.
    optical_ports : the optical ports of each datapath id that is ours. Others may connect but are never written to.
    group_network : the range of group addresses (IPv4, multicast), dropped wherever no forward says otherwise.
    on_event : called on the driver's thread, one event at a time. DeviceUp means: the ToR holds the guards and
        nothing of an earlier run; at its first time in this run no forward, later those that it kept. DeviceDown
        comes before the failures of the steps that the ToR left unanswered.
    fatal : called with the exception when a thread of the driver fails; must end the process.
    step_timeout : seconds from `apply` to the barrier reply.
    probe : how a silent ToR is noticed.

    Raises ValueError for a group network that is none, OSError if the address cannot be listened on.
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
    ) -> None:
        self._steps = Steps(settings, optical_ports, _multicast_network(group_network), step_timeout)
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
        if not session.transmit(encode(session, message)):
            self._inbox.put(Lost(session, "its connection is closing"))

    @staticmethod
    def _close(session: Any) -> None:
        session.hang_up()


def _multicast_network(text: str) -> IPv4Network:
    network = IPv4Network(text)
    if not network.is_multicast:
        raise ValueError(f"group network {text} is not a range of IPv4 multicast addresses")
    return network
