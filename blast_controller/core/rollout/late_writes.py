"""Cross-connects that a switch may still create although they are no longer wanted.

A switch has no token by which it could refuse a former controller: a command of an earlier controller or session may
arrive after another one has read the switch. A circuit does not identify its owner either. Therefore circuits that may
be in flight are remembered and written to the journal: those of all live reservations when a controller takes over a
journal, and those of all commands that a switch left unanswered. If one appears and is not wanted, it is removed and
not treated as foreign. A reading that is `LASTS` seconds younger and does not show them ends this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.records import Body, Record
from blast_controller.core.rollout.outbox import Outbox

KIND = "late"
"""The kind of record that names such circuits of one switch."""
NO_RESERVATION = -1
"""The reservation number of removals."""
LASTS = 60.0
"""Seconds; TCP gives a connection up whose other end has not answered for longer, or the switch has long acted."""
LOOK = 10.0
"""Seconds between two audits, where they are farther apart otherwise, while any are remembered."""


class LateWrites:
    """The circuits, each with the moment from which on a reading without it is believed."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._until: defaultdict[SwitchId, dict[CrossConnect, float]] = defaultdict(dict)

    def __bool__(self) -> bool:
        """Return true if any are remembered."""
        return any(self._until.values())

    def circuits(self, switch: SwitchId) -> frozenset[CrossConnect]:
        """Return the circuits that may still appear on a switch."""
        return frozenset(self._until.get(switch, ()))

    def note(self, circuits: Iterable[CrossConnect], now: float) -> None:
        """Remember circuits that may appear from now on."""
        changed = set()
        for circuit in circuits:
            if circuit not in self._until[circuit.switch]:
                changed.add(circuit.switch)
            self._until[circuit.switch][circuit] = now + LASTS
        self._write(changed, "may arrive late")

    def take_reading(self, switch: SwitchId, present: frozenset[CrossConnect], now: float) -> None:
        """Process a reading of a switch: circuits that are absent for long enough cannot appear any more."""
        noted = self._until.get(switch, {})
        over = [circuit for circuit, until in noted.items() if until <= now and circuit not in present]
        for circuit in over:
            del noted[circuit]
        self._write({switch} if over else (), "cannot arrive")

    def adopt(self, switch: SwitchId, body: Body, now: float) -> None:
        """Adopt the late circuits of an earlier run, with their full time."""
        self._until[switch] |= {CrossConnect(switch, *pair): now + LASTS for pair in body["circuits"]}

    def _write(self, switches: Iterable[SwitchId], note: str) -> None:
        for switch in sorted(switches):
            found = sorted(self._until[switch])
            body = {"circuits": [[c.input, c.output] for c in found]} if found else None
            self._outbox.record(Record(KIND, switch, body, note=note))
