"""What the daemon asks of whatever makes it one of several controllers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from blast_controller.store.interface import Entry, Loaded, Store
from blast_controller.succession.candidate import Hooks
from blast_controller.succession.following import Following


@dataclass(frozen=True, slots=True)
class Watcher:
    """What is told to the daemon while it stands by: all that is in the journal, and the generation of a new leader."""

    show: Callable[[Loaded], None]
    meet: Callable[[int], None]


class Succession(Protocol):
    """Follows whoever leads, and leads when nobody does."""

    @property
    def store(self) -> Store:
        """The journal, which is opened when we come to lead."""

    @property
    def generation(self) -> int:
        """The number of our time as the leader: larger than that of any leader before; 0 while we do not lead."""

    @property
    def sequence(self) -> int:
        """That of the latest entry that we have written, or found when we came to lead."""

    def still_leads(self) -> bool:
        """Whether no other can lead yet; looks at the clock only."""

    def follow(self, watcher: Watcher) -> Following:
        """Who will look at the journal, once started, again and again."""

    def stop_following(self) -> None:
        """We lead."""

    def stand(self, hooks: Hooks, reached: Callable[[], int]) -> None:
        """Lead when nobody does; `reached` counts the devices that have a connection to us."""

    def others(self) -> int:
        """How many other controllers could lead. Raises StoreFault."""

    def history(self, after_sequence: int, limit: int) -> list[Entry]:
        """As `Store.journal`, whoever leads."""

    def leave(self) -> None:
        """Lead no more, if we did, and be no candidate."""
