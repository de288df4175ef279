"""The sender's control connections: to every receiver or to its leader, for one transfer after the other."""

from __future__ import annotations

import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from blast_transport.base.errors import ForgottenError, RemoteError
from blast_transport.links.dialling import Address, Dialer, Dialling, dial
from blast_transport.links.lines import (
    DirectLine,
    Event,
    Handled,
    LeaderLine,
    Line,
    MessageReceived,
    ReceiverConnected,
    ReceiverLost,
)
from blast_transport.session.peers.peer import LISTENING, PeerState
from blast_transport.session.sender_core import SenderCore
from blast_transport.wire.messages import Message, Repair

__all__ = ["Address", "ControlLinks", "Dialer", "dial"]

Segments = Callable[[int, int], memoryview]
"""Returns `count` segments from the first one on, as they travel."""

Unit = tuple[str, ...]
"""Receivers that one connection serves, their leader first."""

_QUEUE_LOW_BYTES = 1 << 18
_SELECTOR_TICK_SECONDS = 0.001
_WAKES = 4096
_RETRY_SECONDS = 1.0
_STRAGGLER_SECONDS = 0.4
_LEADER_SECONDS = 0.5
"""Time after which a node that does not accept the connection is not used as a leader."""
_RETURN_SECONDS = 3.0
"""Time for which receivers behind a lost leader may reconnect, also after all data was sent once."""
_SILENT_SECONDS = 0.7
"""A leader whose members are invited or active sends at least three messages in this time."""
_LISTEN_SECONDS = 0.05
"""Interval between checks for silent leaders."""
_AT_WORK = (PeerState.INVITED, *LISTENING)


class ControlLinks:
    """Connections to receivers by name, each receiver in one of `units`. Not thread-safe, but for `wake`."""

    def __init__(self, receivers: Sequence[Address], dialer: Dialer = dial, units: Iterable[Unit] = ()) -> None:
        self._addresses = {address[0]: address for address in receivers}
        self._units: dict[str, Unit] = {name: (name,) for name in self._addresses}
        self._units.update((name, unit) for unit in units for name in unit)
        self._lines: dict[Unit, Line] = {}
        self._open: dict[str, Line] = {}
        # Those with something that their sockets have not taken.
        self._unsent: dict[Unit, Line] = {}
        self._retry_at: dict[Unit, float] = {}
        self._unreached: dict[str, str] = {}
        self._by_light = False
        self._listen_at = 0.0
        self._selector = selectors.DefaultSelector()
        self._dialling: Dialling[Unit] = Dialling(dialer, self.wake)
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)

    def wake(self) -> None:
        """End the waiting of `exchange`, now or the next one; from any thread, also when all is over."""
        with suppress(OSError):
            self._wake_writer.send(b"\0")

    @property
    def woken(self) -> int:
        """Return a descriptor that is readable from a `wake` on until the next `exchange`."""
        return self._wake_reader.fileno()

    @property
    def open(self) -> frozenset[str]:
        """Return the names of the connected receivers."""
        return frozenset(self._open)

    @property
    def led(self) -> bool:
        """Return whether some receivers are reached through leaders, which may be lost."""
        return any(len(unit) > 1 for unit in self._units.values())

    @property
    def connections(self) -> int:
        """Return the number of connections, to leaders and to receivers."""
        return len(self._lines)

    def own_address(self) -> str:
        """Return this host's address on the packet network, as most receivers see it; empty if none is connected."""
        addresses = Counter(str(line.socket.getsockname()[0]) for line in self._lines.values())
        return max(addresses, key=addresses.__getitem__, default="")

    def address(self, name: str) -> Address:
        """Return the address of this receiver."""
        return self._addresses[name]

    def connect(self, timeout: float) -> dict[str, str]:
        """Connect to every receiver that is not connected; return the failures, name to reason.

        A receiver that does not answer delays the others only briefly; `look_after` may still complete the connection.
        """
        self._drop_closed()
        self._unreached.clear()
        tried: set[str] = {name for name, unit in self._units.items() if len(unit) == 1}
        began = time.monotonic()
        give_up = began + timeout
        self._dial(set(self._units.values()), timeout)
        while self._awaited() and (left := give_up - time.monotonic()) > 0:
            for key, _ in self._selector.select(min(left, _SILENT_SECONDS)):
                self._attend(key.data)
            self._drop_silent()
            self._take_dialled(timeout)
            # Receivers that their leader cannot reach, or that have lost their leader.
            self._dial({self._units[name] for name in self._unreached if name not in tried}, timeout)
            tried |= self._unreached.keys()
            if self._open:
                give_up = min(give_up, time.monotonic() + _STRAGGLER_SECONDS)
        waiting = f"cannot connect: no answer within {time.monotonic() - began:.1f} s"
        return {name: self._unreached.get(name, waiting) for name in self._addresses if name not in self._open}

    def look_after(self, core: SenderCore, timeout: float) -> None:
        """Let go who has failed; try again, in the background, to reach who is not there; hand over who is again."""
        self.drop_failed(core)
        self._take_dialled(timeout, core)
        now = time.monotonic()
        for name in self._open:
            core.connected(name, now)
        absent = {self._units[name] for name in core.peers.keys() - self._open.keys() if not core.peers[name].over}
        self._dial({unit for unit in absent if now >= self._retry_at.get(unit, 0.0)}, timeout)

    def repair(self, core: SenderCore, names: Iterable[str], segments: Segments) -> bool:
        """Queue outstanding repairs of these receivers; return True if there is more, and room for it.

        `segments` returns the data to repair. Its exceptions propagate.
        """
        filled = [name for name in names if name in self._open and self._fill(name, core, segments)]
        self._send_messages(core)
        return any(name in self._open and self._has_room(name) for name in filled)

    def exchange(self, core: SenderCore, timeout: float) -> None:
        """Send the messages of `core`, wait up to `timeout` seconds for its receivers, and pass it their messages."""
        self._send_messages(core)
        for key, events in self._wait(timeout):
            if events & selectors.EVENT_READ:
                self._attend(key.data, core)
        # Silence counts only after everything was read: this process itself may have been stopped.
        if (now := time.monotonic()) >= self._listen_at:
            self._listen_at = now + _LISTEN_SECONDS
            self._drop_silent(core)

    def _send_messages(self, core: SenderCore) -> None:
        for name, message in core.outbox:
            if name in self._open:
                self._queue(name, message)
        core.outbox.clear()
        for line in list(self._unsent.values()):
            self._flush(line, core)

    def _queue(self, name: str, message: Message) -> None:
        line = self._open[name]
        line.send(name, message)
        self._unsent[line.names] = line

    def drop_failed(self, core: SenderCore) -> None:
        """Close the connections of failed receivers: data in them belongs to this transfer.

        Close also connections with queued repairs that another transport delivered first.
        """
        for name, peer in core.peers.items():
            if not peer.over or name not in self._open:
                continue
            line = self._open[name]
            if peer.reason or (peer.overserved and isinstance(line, DirectLine)):
                if line.let_go(name):
                    self._close(line)
                else:
                    self._unsent[line.names] = line
                self._open.pop(name, None)
                self._alone(name)

    def expedite(self, by_light: bool) -> None:
        """Prioritize the packets of the control connections during an optical phase, and not otherwise.

        Applies to later connections, too.
        """
        self._by_light = by_light
        for line in self._lines.values():
            self._set_precedence(line)

    def abort(self) -> None:
        """Close every connection, which ends the sessions on them; new connections are possible."""
        for line in list(self._lines.values()):
            self._close(line)

    def close(self) -> None:
        """Close everything."""
        self._dialling.close()
        self.abort()
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    # ----------------------------------------------------------------------------------------- who is reached how

    def _awaited(self) -> bool:
        """Return whether a connection may still be established."""
        settled = self._open.keys() | self._unreached.keys()
        return bool(self._dialling) or any(not settled.issuperset(unit) for unit in self._lines)

    def _dial(self, units: set[Unit], timeout: float) -> None:
        for unit in units:
            if unit not in self._lines and unit not in self._dialling:
                seconds = timeout if len(unit) == 1 else min(timeout, _LEADER_SECONDS)
                self._dialling.begin(unit, self._addresses[unit[0]], seconds)

    def _take_dialled(self, timeout: float, core: SenderCore | None = None) -> None:
        for unit, outcome in self._dialling.take():
            if not isinstance(outcome, str):
                self._add(unit, outcome, core)
            elif len(unit) > 1:
                # Whether it can be reached is known in a moment, whether its rack can is not: do not try one by one.
                self._dial({self._alone(name) for name in unit}, timeout)
            else:
                self._missed(unit[0], outcome, core)

    def _add(self, unit: Unit, sock: socket.socket, core: SenderCore | None) -> None:
        if len(unit) == 1:
            self._lines[unit] = self._open[unit[0]] = DirectLine(unit[0], sock)
        else:
            self._lines[unit] = LeaderLine([self._addresses[name] for name in unit], sock)
        self._set_precedence(self._lines[unit])
        self._selector.register(sock, selectors.EVENT_READ, self._lines[unit])
        self._unsent[unit] = self._lines[unit]
        self._flush(self._lines[unit], core)

    def _set_precedence(self, line: Line) -> None:
        with suppress(OSError):
            line.expedite(self._by_light)

    def _alone(self, name: str) -> Unit:
        """Give this receiver a connection of its own from now on."""
        self._units[name] = (name,)
        return (name,)

    def _missed(self, name: str, reason: str, core: SenderCore | None, timeout: float = 0.0) -> None:
        now = time.monotonic()
        self._unreached[name] = reason
        if not timeout:
            self._retry_at[(name,)] = now + _RETRY_SECONDS
        if core is not None:
            core.disconnected(name, reason, now, timeout)

    def _lose(self, line: Line, reason: str, core: SenderCore | None) -> None:
        """Handle a lost connection: a receiver may reconnect, members continue under the next of them."""
        members = [name for name in line.names if self._units[name] == line.names]
        served = self._close(line)
        if isinstance(line, DirectLine):
            self._missed(line.names[0], reason, core)
            return
        rest = tuple(name for name in served if name != line.names[0])
        for name in members:
            self._missed(name, f"its leader {line.names[0]} was lost: {reason}", core, _RETURN_SECONDS)
            self._units[name] = rest if name in rest else (name,)

    def _close(self, line: Line) -> list[str]:
        """Close a connection; return the receivers that it served."""
        served = [name for name in line.names if self._open.get(name) is line]
        for name in served:
            del self._open[name]
        del self._lines[line.names]
        self._unsent.pop(line.names, None)
        self._selector.unregister(line.socket)
        line.close()
        return served

    # ------------------------------------------------------------------------------------------------- messages

    def _attend(self, data: Line | None, core: SenderCore | None = None) -> None:
        """Read what there is."""
        if data is None:
            with suppress(BlockingIOError):
                self._wake_reader.recv(_WAKES)
        elif data.names in self._lines:
            try:
                events = data.receive()
            except RemoteError as error:
                self._lose(data, str(error), core)
                return
            for event in events:
                self._take(data, event, core)

    def _take(self, line: Line, event: Event, core: SenderCore | None) -> None:
        match event:
            case ReceiverConnected(name):
                if self._units[name] == line.names:
                    self._open[name] = line
            case ReceiverLost(name, reason):
                if self._open.get(name, line) is line:
                    self._open.pop(name, None)
                    self._alone(name)
                    self._missed(name, reason, core, _RETURN_SECONDS)
                    if line.names not in self._units.values():
                        self._close(line)
            case MessageReceived(name, message) if core is not None:
                core.receive(name, message, time.monotonic())
            case Handled(session, blocks) if core is not None:
                core.handled_by(session, blocks, time.monotonic())

    def _fill(self, name: str, core: SenderCore, segments: Segments) -> bool:
        """Queue some repairs; return true if there were any. Never many, so that all receivers get their turn."""
        line, now, filled = self._open[name], time.monotonic(), False
        while line.queued_bytes(name) < _QUEUE_LOW_BYTES and (runs := core.take_repair(name, now)):
            try:
                pieces = [(first, segments(first, count)) for first, count in runs]
            except ForgottenError as error:
                demoted = core.peers[name].demoted
                core.lose(name, f"it was too far behind the stream: {error}" + (f" ({demoted})" if demoted else ""))
                return False
            if pieces := [piece for piece in pieces if piece[1]]:
                self._queue(name, Repair(core.hello.session, tuple(pieces)))
            filled = True
        return filled

    def _has_room(self, name: str) -> bool:
        line = self._open.get(name)
        return line is not None and not line.has_output and line.queued_bytes(name) < _QUEUE_LOW_BYTES

    def _flush(self, line: Line, core: SenderCore | None) -> None:
        try:
            line.flush()
        except RemoteError as error:
            self._lose(line, str(error), core)
            return
        if not line.has_output:
            self._unsent.pop(line.names, None)
        interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if line.has_output else 0)
        if self._selector.get_key(line.socket).events != interest:
            self._selector.modify(line.socket, interest, line)

    def _wait(self, timeout: float) -> list[tuple[selectors.SelectorKey, int]]:
        # epoll counts in whole milliseconds and rounds up; pacing needs better, so the last millisecond is slept.
        # Messages that arrive meanwhile wait: a wake-up for each of them would cost more than it is worth.
        if timeout > _SELECTOR_TICK_SECONDS:
            give_up = time.monotonic() + timeout
            if events := self._selector.select(timeout - _SELECTOR_TICK_SECONDS):
                return events
            timeout = min(give_up - time.monotonic(), _SELECTOR_TICK_SECONDS)
        if timeout > 0:
            time.sleep(timeout)
        return self._selector.select(0)

    def _drop_silent(self, core: SenderCore | None = None) -> None:
        """Drop stopped leaders: they keep their connections, so that only their silence shows it."""
        now = time.monotonic()
        for line in [line for line in self._lines.values() if isinstance(line, LeaderLine)]:
            if now < line.last_received + _SILENT_SECONDS:
                continue
            served = [name for name in line.names if self._open.get(name) is line]
            at_work = core is not None and any(core.peers[name].state in _AT_WORK for name in served)
            if at_work or not line.spoke:
                self._lose(line, f"no message for {_SILENT_SECONDS:g} s", core)

    def _drop_closed(self) -> None:
        """Drop connections that were closed between transfers: a receiver sends nothing then, so readable is closed."""
        for key, _ in self._selector.select(0):
            if isinstance(key.data, DirectLine):
                self._close(key.data)
            else:
                self._attend(key.data)
