"""The condition of the controller itself, as the Thrift methods tell it."""

from __future__ import annotations

from typing import Protocol

from blast_controller.core.model.errors import Rejected


class Condition(Protocol):
    """What to know of the controller, and the way out of holding."""

    def warnings(self) -> list[str]:
        """What whoever looks should know, a sentence each."""

    def resume(self) -> None:
        """Decide again after holding; may take a while. Raises Rejected if it does not hold."""

    def step_down(self) -> None:
        """Let another controller decide, soon after this returns. Raises Rejected where there is none."""


class Healthy:
    """The condition of a controller that decides, and of which there is nothing to tell."""

    def warnings(self) -> list[str]:
        """Nothing."""
        return []

    def resume(self) -> None:
        """Refuse: it decides. Raises Rejected."""
        raise not_holding()

    def step_down(self) -> None:
        """Refuse: it is alone. Raises Rejected."""
        raise no_standby()


def not_holding() -> Rejected:
    """The refusal of `resume` where it has no sense."""
    return Rejected("not_holding", "The controller is not holding: it decides already.")


def no_standby() -> Rejected:
    """The refusal of `stepDown` where nobody would take over."""
    return Rejected("no_standby", "No other controller stands by: nobody would take over.")
