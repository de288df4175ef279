"""A core's life from outside: what it was told and what it said to that. Lived again, it must be the same.

What it refused is left out: so whatever a refused event has changed after all is found once it makes a difference to
anybody, and so is whatever a clock or chance has a part in.
"""

from __future__ import annotations

from collections.abc import Sequence

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command, Optimise


class Life:
    """From the moment that a core is made: `note` everything that it is asked to do, by the name of its method."""

    def __init__(self, core: Core) -> None:
        self._fabric, self._settings = core.fabric, core.settings
        self._deeds: list[tuple[str, tuple, Sequence[object]]] = []

    def note(self, deed: str, arguments: tuple, said: Sequence[Command]) -> None:
        """It was asked to do this, with what came of it."""
        self._deeds.append((deed, arguments, [_plain(command) for command in said]))

    def live_again(self) -> None:
        """The same again, by another core."""
        core = Core(self._fabric, self._settings)
        for deed, arguments, said in self._deeds:
            again = [_plain(command) for command in getattr(core, deed)(*arguments) or ()]
            assert again == said, f"{deed}{arguments} comes to something else without what was refused before"


def _plain(command: Command) -> object:
    """A command as it can be compared."""
    if not isinstance(command, Optimise):
        return command
    asked = command.contention
    pools = {switch: dict(free.pool) for switch, free in asked.free.items()}
    return command.revision, command.seconds, asked.contenders, dict(asked.left), pools
