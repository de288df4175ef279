"""The condition of the controller, for the Thrift methods."""

from __future__ import annotations

from typing import Protocol

from blast_controller.core.model.errors import RejectedError


class Condition(Protocol):
    """The condition of the controller, and the release from safe mode."""

    def warnings(self) -> list[str]:
        """Return warnings for all clients, one sentence each."""

    def resume(self) -> None:
        """Leave safe mode and decide again, which may take a while.

        Raises RejectedError outside safe mode, or if the configuration conflicts with active light trees.
        """

    def step_down(self) -> None:
        """Let a standby take over, soon after this returns. Raises RejectedError if there is none."""


class Healthy:
    """The condition of a leader without warnings."""

    def warnings(self) -> list[str]:
        """Return no warnings."""
        return []

    def resume(self) -> None:
        """Raise RejectedError: the controller is not in safe mode."""
        raise not_in_safe_mode()

    def step_down(self) -> None:
        """Raise RejectedError: there is no standby."""
        raise no_standby()


def not_in_safe_mode() -> RejectedError:
    """Return the rejection of `resume` outside safe mode."""
    return RejectedError("not_in_safe_mode", "The controller is not in safe mode.")


def no_standby() -> RejectedError:
    """Return the rejection of `stepDown` without a standby."""
    return RejectedError("no_standby", "There is no standby controller that could take over: start one first.")
