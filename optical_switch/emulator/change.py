"""A planned change of an emulated switch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optical_switch.emulator.crossbar import RefusalError
from optical_switch.model import Circuit


def _ignore(_refusal: RefusalError | None) -> None:
    pass


@dataclass(frozen=True, slots=True)
class CrossbarChange:
    """A change of the crossbar that a command requests.

    Parameters
    ----------
    removed : tuple[Circuit, ...]
        Circuits to remove first.
    added : tuple[Circuit, ...]
        Circuits to set.
    seconds : float
        Time that the change takes.
    refusal : RefusalError | None
        Refusal of the rest of the command, which follows once the circuits here are set.
    done : Callable[[RefusalError | None], None]
        Function that is called exactly once, with the outcome.
    """

    removed: tuple[Circuit, ...] = ()
    added: tuple[Circuit, ...] = ()
    seconds: float = 0.0
    refusal: RefusalError | None = None
    done: Callable[[RefusalError | None], None] = _ignore
