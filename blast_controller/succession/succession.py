"""The daemon's interface to several controllers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from blast_controller.store.interface import Entry, Loaded, Store
from blast_controller.succession.candidate import Hooks
from blast_controller.succession.following import Following


@dataclass(frozen=True, slots=True)
class Watcher:
    """Callbacks of a standby: the complete state of the journal, and the generation of a new leader."""

    show: Callable[[Loaded], None]
    meet: Callable[[int], None]


class Succession(Protocol):
    """Follows the leader, and takes over if there is none."""

    @property
    def store(self) -> Store:
        """Return the journal, which is opened when we come to lead."""

    @property
    def generation(self) -> int:
        """Return the number of this controller's term as the leader; 0 while it is not the leader.

        It is larger than that of any leader before.
        """

    @property
    def sequence(self) -> int:
        """Return the sequence of the latest entry written, or found when this controller became the leader."""

    def holds_leadership(self) -> bool:
        """Return true if no other controller can be the leader yet; uses the clock only."""

    def follow(self, watcher: Watcher) -> Following:
        """Return a follower of the journal, to be started."""

    def stop_following(self) -> None:
        """Stop following: this controller is the leader."""

    def stand(self, hooks: Hooks, reached: Callable[[], int]) -> None:
        """Become a candidate for leadership; `reached` counts the devices connected to this controller."""

    def others(self) -> int:
        """Return the number of other candidates. Raises JournalError."""

    def history(self, after_sequence: int, limit: int) -> list[Entry]:
        """Read entries like `Store.journal`, also on a standby."""

    def leave(self) -> None:
        """Resign as leader and end the candidacy."""
