"""The core's machine with a flight recorder: what was shown at every moment, and all that the core was told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command
from blast_controller.core.snapshot.changes import EVERYTHING, Changes
from blast_controller.moments.encoder import Encoder, Rows, all_rows
from blast_controller.moments.moment import Moment
from blast_controller.recording.blocks import stamp_of
from blast_controller.recording.retention import Keep
from blast_controller.recording.writer import RunFacts, Writer
from tests.support.core_machine import CoreMachine
from tests.support.dice import Dice

BEGIN = 1_790_000_000.0
BETWEEN_EPISODES = 10_000.0


class Tape:
    """A recording of one machine after another; `noted[n]` is what was shown at moment n + 1."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.noted: list[Rows] = []
        self.walls: list[float] = []
        self.inputs: list[tuple[str, tuple, int]] = []
        """Deeds, or the making of a core, with the number of the moment that was the latest after them."""
        self.lives = 0
        self._writer = Writer(path, Keep(days=1e6))
        self._encoder = Encoder()
        self._core: Core | None = None
        self._is_new = False
        self._began = BEGIN

    def new_world(self) -> None:
        """Another machine begins."""
        self._core, self._began = None, self._began + BETWEEN_EPISODES

    def note(self, core: Core, deed: str, arguments: tuple, now: float) -> None:
        """A core was asked to do something."""
        if core is not self._core:
            self._core, self._is_new = core, True
            self.lives += 1
            self.inputs.append(("life", (core.fabric, core.settings), len(self.noted)))
        if deed != "take":
            self._shown(core, now, self._is_new)
            self._is_new = False
        self.inputs.append((deed, arguments, len(self.noted)))

    def _shown(self, core: Core, now: float, is_new: bool) -> None:
        changes, wall = core.take_changes(), self._began + now
        difference = self._encoder.encode(Moment(core.snapshot, now, wall, EVERYTHING if is_new else changes))
        if is_new:
            facts = RunFacts(self.lives, "this", "here", "a core begins")
            self._writer.begin(stamp_of(now, wall), self._encoder.rows, facts)
        elif difference:
            self._writer.append(stamp_of(now, wall), difference)
            if len(self.noted) % 3 == 0:
                self._writer.flush(round(wall * 1e6))
        if is_new or difference:
            self.noted.append(all_rows(core.snapshot))
            self.walls.append(wall)

    def end(self) -> None:
        """Nothing more comes."""
        self._writer.flush(round(self._began * 1e6))
        self._writer.close()


class RecordedMachine(CoreMachine):
    """One machine, on a tape."""

    def __init__(self, tape: Tape, dice: Dice, counts: Counter[tuple[str, str]] | None = None) -> None:
        self._tape = tape
        tape.new_world()
        super().__init__(dice, counts)

    def remember(self, deed: str, arguments: tuple, said: list[Command]) -> None:
        super().remember(deed, arguments, said)
        self._tape.note(self.world.core, deed, arguments, self.world.now)

    def _changes(self) -> Changes:
        # The tape takes the core's changes.
        return EVERYTHING
