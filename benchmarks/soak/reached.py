"""What a soak has come to: everything that the report is made of, also when it was interrupted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from soak.files import Received
from soak.latencies import Call, Window
from soak.roster import Roster
from soak.sampling import Sample
from soak.schedule import Slice


@dataclass
class Usage:
    """Processor time in seconds, and the time in which it was used."""

    used: float = 0.0
    during: float = 0.0

    @property
    def share(self) -> float:
        """Of one processor."""
        return self.used / self.during if self.during else 0.0

    def add(self, used: float, during: float) -> None:
        """Another slice."""
        self.used += used
        self.during += during


@dataclass(frozen=True, slots=True)
class Pause:
    """How long it took after a slice of hostile work; `calm`: the controller was done with what that had left."""

    seconds: float
    calm: bool


@dataclass
class Reached:
    """Grows while the soak runs.

    `hostile_before` is what hostile clients did in slices that are over, `hostile_now` in the one that runs; `received`
    what came of each sender's files; `compared`: the comparison at the end came to a verdict.
    """

    roster: Roster
    plan: list[Slice]
    calls: list[Call] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    hostile_before: dict[str, Counter[str]] = field(default_factory=dict)
    hostile_now: dict[str, dict[str, int]] = field(default_factory=dict)
    hostile_cpu: Usage = field(default_factory=Usage)
    burnt_cpu: Usage = field(default_factory=Usage)
    ends: list[str] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    compared: bool = False
    interrupted: bool = False

    @property
    def intact(self) -> int:
        """Files that arrived as they were sent, one for each receiver."""
        return sum(one.intact for one in self.received)

    @property
    def by_light(self) -> int:
        """Transfers of which light carried something."""
        return sum(one.by_light for one in self.received)

    @property
    def wrong(self) -> list[str]:
        """A sentence for each file that did not."""
        return [fault for one in self.received for fault in one.wrong]

    @property
    def failures(self) -> list[str]:
        """What the exit status goes by, a sentence each."""
        found = [*self.wrong, *self.differences, *self.left, *self.ends]
        if not self.compared and not self.interrupted:
            found.append("journal, rules and cross-connects were not compared")
        if not self.intact and not self.interrupted:
            found.append("no file arrived, so none was compared")
        return found

    @property
    def hostile(self) -> dict[str, Counter[str]]:
        """What each hostile client has done."""
        names = dict.fromkeys((*self.hostile_before, *self.hostile_now))
        return {name: self.hostile_before.get(name, Counter()) + Counter(self.hostile_now.get(name)) for name in names}

    def end_attack(self) -> None:
        """A slice of hostile work is over; the next one counts anew."""
        self.hostile_before, self.hostile_now = self.hostile, {}
