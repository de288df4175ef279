"""Aggregation of the members' credits at a rack leader. No sockets, no clock.

Theory of operation. The leader parses the messages in both directions. A member counts from its Hello until it ends, is
lost, or is demoted; and again when it is readmitted. The sender's window depends on the slowest counted member, so the
leader sends the smallest `handled` as soon as it has risen by the phase's credit, together with the value that half of
the members have reached, by which a sender distinguishes a slow member from a rate that is too high. The members' own
credits, for progress and for written blocks, are collected briefly and sent together.
"""

from __future__ import annotations

from blast_transport.wire.messages import Abort, Credit, Demoted, Fin, Hello, Message, Phase, Readmitted, Ready
from blast_transport.wire.relaying import GroupCredit, MemberCredits, RelayMessage

REPORT_SECONDS = 0.2
"""Between reports of a rack leader, which stand for those of its members."""


class LeaderGroup:
    """The members of one leader, by number, in one session after the other."""

    def __init__(self) -> None:
        self._session: int | None = None
        self._credit: int | None = None
        self._handled: dict[int, int] = {}
        self._apart: dict[int, int] = {}
        self._reported = 0
        self._news: dict[int, Credit] = {}
        self._report_at = 0.0

    def from_sender(self, member: int, message: Message) -> None:
        """Handle a message from the sender to a member."""
        match message:
            case Hello():
                if message.session != self._session:
                    self._session, self._credit, self._reported = message.session, None, 0
                    self._handled, self._apart, self._news = {}, {}, {}
                self._handled[member] = 0
            case Phase():
                self._credit = message.credit if message.traits.windowed else None
            case Demoted() if member in self._handled:
                self._apart[member] = self._handled.pop(member)
            case Readmitted() if member in self._apart:
                self._handled[member] = self._apart.pop(member)
                # The sender may know less of its progress than of the counted members.
                self._reported = 0
            case Abort():
                self.lost(member)

    def from_member(self, member: int, message: Message) -> bool:
        """Handle a message from a member to the sender; return whether it is aggregated here."""
        if message.session != self._session:
            return False
        match message:
            case Ready():
                first = message.held[0] if message.held else (0, 0)
                self._reached(member, first[1] if first[0] == 0 else 0)
            case Credit():
                self._news[member] = message
                self._reached(member, message.handled)
                return True
            case Fin() | Abort():
                self.lost(member)
        return False

    def lost(self, member: int) -> None:
        """Remove a member that has ended or whose connection is lost."""
        self._handled.pop(member, None)
        self._apart.pop(member, None)
        self._news.pop(member, None)

    def take(self, now: float) -> list[RelayMessage]:
        """Return the messages that are due to the sender."""
        due: list[RelayMessage] = []
        report = bool(self._news) and now >= self._report_at
        slowest = min(self._handled.values(), default=0)
        # A late member begins further behind: its progress counts again.
        self._reported = min(self._reported, slowest)
        assert self._session is not None or not report
        if slowest > self._reported and (
            report or (self._credit is not None and slowest >= self._reported + self._credit)
        ):
            self._reported = slowest
            due.append(self._group_credit(slowest))
        if report and self._session is not None:
            self._report_at = now + REPORT_SECONDS
            rows = tuple((member, c.handled, c.position, c.written) for member, c in self._news.items())
            due.append(MemberCredits(self._session, rows))
            self._news = {}
        return due

    def deadline(self) -> float | None:
        """Return the latest time for the next `take`; None if none is due."""
        return self._report_at if self._news else None

    def _reached(self, member: int, handled: int) -> None:
        for known in (self._handled, self._apart):
            if member in known:
                known[member] = max(known[member], handled)

    def _group_credit(self, slowest: int) -> GroupCredit:
        assert self._session is not None
        ahead = sorted(self._handled.values())[(len(self._handled) - 1) // 2]
        behind = tuple(member for member, handled in self._handled.items() if handled < ahead)
        return GroupCredit(self._session, slowest, ahead, behind)
