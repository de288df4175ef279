"""Cross-connects that a switch may still make although whoever wanted them does so no longer.

TL1 knows no token by which a switch could refuse who has been replaced: what an older controller, or an older session,
has sent may arrive when another has read the switch already. A circuit does not say whose it is, either. So what may
be on its way is remembered, and journalled: the circuits of all that was live when a controller takes a journal over,
and of all of which a switch has left something unanswered. Found while nobody wants them, they are taken away again
and no stranger's. They are forgotten by a reading that is `LASTS` seconds younger and does not show them.
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
NOBODY = -1
"""Stands for a reservation where they are taken away."""
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
        """Whether any are remembered."""
        return any(self._until.values())

    def circuits(self, switch: SwitchId) -> frozenset[CrossConnect]:
        """What may still come to be on a switch."""
        return frozenset(self._until.get(switch, ()))

    def note(self, circuits: Iterable[CrossConnect], now: float) -> None:
        """These may be made from now on."""
        changed = set()
        for circuit in circuits:
            if circuit not in self._until[circuit.switch]:
                changed.add(circuit.switch)
            self._until[circuit.switch][circuit] = now + LASTS
        self._write(changed, "may come late")

    def take_reading(self, switch: SwitchId, present: frozenset[CrossConnect], now: float) -> None:
        """A switch holds these: what is not among them for long enough will not come any more."""
        noted = self._until.get(switch, {})
        over = [circuit for circuit, until in noted.items() if until <= now and circuit not in present]
        for circuit in over:
            del noted[circuit]
        self._write({switch} if over else (), "comes no more")

    def adopt(self, switch: SwitchId, body: Body, now: float) -> None:
        """Take over what an earlier run has remembered: its whole time begins anew."""
        self._until[switch] |= {CrossConnect(switch, *pair): now + LASTS for pair in body["circuits"]}

    def _write(self, switches: Iterable[SwitchId], note: str) -> None:
        for switch in sorted(switches):
            found = sorted(self._until[switch])
            body = {"circuits": [[c.input, c.output] for c in found]} if found else None
            self._outbox.record(Record(KIND, switch, body, note=note))
