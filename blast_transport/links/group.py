"""What a rack leader tells of the credits of its members. No sockets, no clock.

Theory of operation. The leader reads along what passes in both directions. A member counts from its invitation on
until it ends, is lost, or is demoted; and again when it is promoted. The sender's window hangs on the slowest of those
that count, so the smallest `handled` of them goes out as soon as it has risen by the phase's credit, together with what
half of them have reached, by which a sender tells one that is slow from a rate that is too high. The members' own
credits, for progress and for what is written, wait for each other for a moment and go out together.
"""

from __future__ import annotations

from blast_transport.wire.messages import Credit, Demoted, Fin, Hello, Message, Phase, Promoted, Quit, Ready
from blast_transport.wire.relaying import GroupCredit, MemberCredits, RelayMessage

REPORT_SECONDS = 0.2


class Group:
    """The members of one leader, by number, in one session after the other."""

    def __init__(self) -> None:
        self._session: int | None = None
        self._credit: int | None = None
        self._handled: dict[int, int] = {}
        self._apart: dict[int, int] = {}
        self._told = 0
        self._news: dict[int, Credit] = {}
        self._report_at = 0.0

    def told(self, member: int, message: Message) -> None:
        """The sender says this to a member."""
        match message:
            case Hello():
                if message.session != self._session:
                    self._session, self._credit, self._told = message.session, None, 0
                    self._handled, self._apart, self._news = {}, {}, {}
                self._handled[member] = 0
            case Phase():
                self._credit = message.credit if message.traits.windowed else None
            case Demoted() if member in self._handled:
                self._apart[member] = self._handled.pop(member)
            case Promoted() if member in self._apart:
                self._handled[member] = self._apart.pop(member)
                # The sender may know less of it than of those for whom it waited.
                self._told = 0
            case Quit():
                self.lost(member)

    def heard(self, member: int, message: Message) -> bool:
        """A member says this to the sender; whether it is kept here, to be told with others."""
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
            case Fin() | Quit():
                self.lost(member)
        return False

    def lost(self, member: int) -> None:
        """The member has ended, or its connection has."""
        self._handled.pop(member, None)
        self._apart.pop(member, None)
        self._news.pop(member, None)

    def take(self, now: float) -> list[RelayMessage]:
        """What is to be told the sender now."""
        due: list[RelayMessage] = []
        report = bool(self._news) and now >= self._report_at
        slowest = min(self._handled.values(), default=0)
        # Who came late begins further behind: its rise counts again.
        self._told = min(self._told, slowest)
        assert self._session is not None or not report
        if slowest > self._told and (report or (self._credit is not None and slowest >= self._told + self._credit)):
            self._told = slowest
            due.append(self._group_credit(slowest))
        if report and self._session is not None:
            self._report_at = now + REPORT_SECONDS
            rows = tuple((member, c.handled, c.position, c.written) for member, c in self._news.items())
            due.append(MemberCredits(self._session, rows))
            self._news = {}
        return due

    def deadline(self) -> float | None:
        """When `take` has something to tell at the latest; None if never."""
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
