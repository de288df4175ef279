"""Foreign state on devices, as of their latest reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from blast_controller.core.controller import Core
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import DatapathId, ElementId, SwitchId
from blast_controller.core.model.wording import listed


class Drift:
    """Counts it. Noted on the thread that decides, read from any."""

    def __init__(self) -> None:
        self._rules: dict[DatapathId, int] = {}
        self.elements = 0
        """Elements of optical switches that foreign cross-connects occupy."""
        self.warnings: tuple[str, ...] = ()
        """A warning for each optical switch with foreign cross-connects at these elements."""

    @property
    def rules(self) -> int:
        """Return the number of foreign rules on ToRs, the packet network's own included."""
        return sum(self._rules.copy().values())

    def note_table(self, datapath: DatapathId, foreign: int) -> None:
        """Record the number of foreign rules on a ToR."""
        self._rules[datapath] = foreign

    def note_circuits(self, core: Core) -> None:
        """Record the foreign circuits of an optical switch after a reading."""
        occupied = core.view.occupied
        self.elements = sum(map(len, occupied.values()))
        self.warnings = tuple(
            foreign_circuits(switch, occupied[switch]) for switch in sorted(occupied) if occupied[switch]
        )


def foreign_circuits(switch: SwitchId, occupied: Mapping[ElementId, CrossConnect]) -> str:
    """Return a warning that names the foreign circuits of an optical switch, their elements and the remedy."""
    elements: defaultdict[CrossConnect, list[str]] = defaultdict(list)
    for element, circuit in occupied.items():
        elements[circuit].append(element)
    circuits = listed(f"{c.input} to {c.output} ({', '.join(sorted(elements[c]))})" for c in sorted(elements))
    return (
        f"The optical switch {switch} has circuits that this controller did not set: {circuits}; end any other "
        "controller that uses these ports, disconnect the circuits on the switch, then run `blast reconcile`."
    )
