"""The state of an emulated switch in any language: crossbar, optical power, owners, faults and speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tl1_driver.emulator.crossbar import Crossbar, RefusalError
from tl1_driver.emulator.faults import Faults
from tl1_driver.emulator.light import PowerMonitors
from tl1_driver.protocol.circuits import Circuit, Port

FAILED = "SROF"
LOCKED = "SLOC"


def _ignore(_refusal: RefusalError | None) -> None:
    pass


@dataclass(frozen=True, slots=True)
class CrossbarChange:
    """A change of the crossbar that a command requests.

    It takes `seconds`; the answer `waits` for it or leaves at once. `refusal` follows once the circuits here are set.
    `done` is called with the outcome of the change.
    """

    removed: tuple[Circuit, ...] = ()
    added: tuple[Circuit, ...] = ()
    seconds: float = 0.0
    waits: bool = True
    refusal: RefusalError | None = None
    done: Callable[[RefusalError | None], None] = _ignore


@dataclass
class ManualCircuits:
    """`owners` maps circuits that were set by hand to their owners; circuits in `locked` cannot be removed."""

    crossbar: Crossbar
    faults: Faults
    light: PowerMonitors
    sid: str
    connect_seconds: float
    disconnect_seconds: float
    owners: dict[Circuit, str] = field(default_factory=dict)
    locked: set[Circuit] = field(default_factory=set)

    def powers(self) -> dict[Port, float]:
        """Return the power at each lit port, in dBm."""
        return self.light.powers(self.crossbar.circuits)

    def connecting(self, circuits: Sequence[Circuit], removed: Sequence[Circuit] = ()) -> CrossbarChange:
        """Return the change that sets `circuits` in place of `removed`.

        Raises `RefusalError` if they cannot all be set, unless the fault `partial_bulk` is injected.
        """
        seconds = self.connect_seconds + max((self.faults.slow_inputs.get(c.input, 0.0) for c in circuits), default=0.0)
        try:
            self._check(circuits, removed)
        except RefusalError as refusal:
            if not self.faults.partial_bulk:
                raise
            return CrossbarChange(
                tuple(removed), self._possible(circuits, removed), seconds, refusal=self._partly(refusal)
            )
        return CrossbarChange(tuple(removed), tuple(circuits), seconds)

    def disconnecting(self, circuits: Sequence[Circuit]) -> CrossbarChange:
        """Return the change that removes `circuits`. Raises `RefusalError` if one is locked or not set."""
        self.check_unlocked(circuits)
        self.crossbar.check_disconnect(circuits)
        return CrossbarChange(tuple(circuits), (), self.disconnect_seconds)

    def check_unlocked(self, circuits: Sequence[Circuit]) -> None:
        """Raise `RefusalError` if one of `circuits` is locked."""
        for circuit in circuits:
            if circuit in self.locked:
                owner = self.owners.get(circuit, "")
                raise RefusalError(LOCKED, f"the connection {circuit.input} to {circuit.output} is locked by {owner}")

    def _check(self, circuits: Sequence[Circuit], removed: Sequence[Circuit]) -> None:
        for circuit in circuits:
            if circuit.input in self.faults.refused_inputs or circuit.output in self.faults.refused_outputs:
                raise RefusalError(FAILED, f"connecting {circuit.input} to {circuit.output} failed")
        self.crossbar.check_change(removed, circuits)

    def _possible(self, circuits: Sequence[Circuit], removed: Sequence[Circuit]) -> tuple[Circuit, ...]:
        """Return the circuits before the first that cannot be set."""
        for count in range(len(circuits), 0, -1):
            try:
                self._check(circuits[:count], removed)
            except RefusalError:
                continue
            return tuple(circuits[:count])
        return ()

    def _partly(self, refusal: RefusalError) -> RefusalError | None:
        if self.faults.partial_code == "COMPLD":
            return None
        return RefusalError(refusal.code, refusal.text, self.faults.partial_code)
