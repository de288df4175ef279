"""What devices hold that is not of our making, as far as they were looked at."""

from __future__ import annotations

from blast_controller.core.controller import Core
from blast_controller.core.model.identifiers import DatapathId


class Drift:
    """Counts it. Noted on the thread that decides, read from any."""

    def __init__(self) -> None:
        self._rules: dict[DatapathId, int] = {}
        self.elements = 0
        """Of optical switches, those that somebody else's cross-connects occupy."""

    @property
    def rules(self) -> int:
        """On ToRs; the packet network's own are among them."""
        return sum(self._rules.copy().values())

    def note_table(self, datapath: DatapathId, foreign: int) -> None:
        """A ToR holds so many rules that Blast did not make."""
        self._rules[datapath] = foreign

    def note_circuits(self, core: Core) -> None:
        """An optical switch was read."""
        self.elements = sum(map(len, core.view.occupied.values()))
