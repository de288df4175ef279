"""A core with the same inputs as another shows the same state after each: a run can be replayed from its inputs."""

from __future__ import annotations

from collections import Counter

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command
from blast_controller.history.encoder import Rows, all_rows
from tests.soak.core import episode
from tests.support.controller.core_machine import CoreMachine

MOMENTS = 300
EPISODES = range(10_000)


class RecordedMachine(CoreMachine):
    """The core's machine, which keeps every call of its cores with the rows shown after it (None: not read).

    A core begins with the call "life", whose arguments make another of it.
    """

    def __init__(self, dice, counts) -> None:
        self.calls: list[tuple[str, tuple, Rows | None]] = []
        self._last: Core | None = None
        super().__init__(dice, counts)

    def remember(self, deed: str, arguments: tuple, commands: list[Command]) -> None:
        super().remember(deed, arguments, commands)
        core = self.world.core
        if core is not self._last:
            self._last = core
            self.calls.append(("life", (core.fabric, core.settings), None))
        self.calls.append((deed, arguments, None if deed == "take" else all_rows(core.snapshot)))


def test_core_replay_of_the_same_inputs_shows_the_same_state():
    machines: list[RecordedMachine] = []
    compared, kinds = 0, set()

    def make(dice, counts) -> RecordedMachine:
        machines.append(RecordedMachine(dice, counts))
        return machines[-1]

    for seed in EPISODES:
        episode(seed, Counter(), make=make)
        for deed, arguments, shown in machines.pop().calls:
            if deed == "life":
                core = Core(*arguments)
                continue
            getattr(core, deed)(*arguments)
            if shown is not None:
                assert all_rows(core.snapshot) == shown, f"seed {seed}, after {deed}"
                compared, kinds = compared + 1, kinds | {name.partition("/")[0] for name in shown}
        if compared > MOMENTS:
            break
    assert kinds == {"fabric", "request", "tree", "unit", "away", "warm"}
