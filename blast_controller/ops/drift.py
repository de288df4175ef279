"""Foreign state on devices, as of their latest reading."""

from __future__ import annotations

from blast_controller.core.controller import Core
from blast_controller.core.model.identifiers import DatapathId


class Drift:
    """Counts it. Noted on the thread that decides, read from any."""

    def __init__(self) -> None:
        self._rules: dict[DatapathId, int] = {}
        self.elements = 0
        """Elements of optical switches that foreign cross-connects occupy."""

    @property
    def rules(self) -> int:
        """Return the number of foreign rules on ToRs, the packet network's own included."""
        return sum(self._rules.copy().values())

    def note_table(self, datapath: DatapathId, foreign: int) -> None:
        """Record the number of foreign rules on a ToR."""
        self._rules[datapath] = foreign

    def note_circuits(self, core: Core) -> None:
        """Record the foreign circuits of an optical switch after a reading."""
        self.elements = sum(map(len, core.view.occupied.values()))
