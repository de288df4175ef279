"""The circuits of an emulated switch: states, owners and locks, and the list of them, which may lag behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from optical_switch.emulator.circuit_history import CircuitHistory, ListedState
from optical_switch.emulator.crossbar import Crossbar, RefusalError, SwitchRefusal, ends
from optical_switch.model import Circuit, CircuitReading, CircuitState


class CircuitTable:
    """The circuits of `crossbar`, which pass light, and the circuits that are `tuning` or have `failed`.

    A failed circuit occupies no port. It is listed until it is removed or another circuit takes one of its ports.
    """

    def __init__(self, crossbar: Crossbar, now: Callable[[], float]) -> None:
        self.crossbar = crossbar
        self.tuning: frozenset[Circuit] = frozenset()
        self.failed: dict[Circuit, str] = {}
        self.owners: dict[Circuit, str] = {}
        self.locked: set[Circuit] = set()
        self._history = CircuitHistory(now)

    def listed(self, seconds: float = 0.0) -> list[CircuitReading]:
        """Return all circuits by input, as they were `seconds` ago, or when they were listed last."""
        circuits = {*self.crossbar.circuits, *self.tuning, *self.failed}
        listed = {circuit: state for circuit in circuits if (state := self._state(circuit)) is not None}
        self._history.restore(listed, seconds)
        return [CircuitReading(circuit, *state) for circuit, state in sorted(listed.items())]

    def check_unlocked(self, circuits: Iterable[Circuit]) -> None:
        """Raise `RefusalError` if one of `circuits` is locked."""
        for circuit in circuits:
            if circuit in self.locked:
                owner = self.owners.get(circuit, "")
                text = f"the connection {circuit.input} to {circuit.output} is locked by {owner}"
                raise RefusalError(SwitchRefusal.LOCKED, text, ends(circuit))

    def check_change(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        """Raise `RefusalError` if `removed`, failed circuits among them, cannot be removed and then `added` set."""
        self.crossbar.check_change(self.lit(removed), added)

    def lit(self, circuits: Iterable[Circuit]) -> list[Circuit]:
        """Return `circuits` without the failed ones."""
        return [circuit for circuit in circuits if circuit not in self.failed]

    def begin(self, circuits: Iterable[Circuit]) -> None:
        """List these circuits as tuning until `end`."""
        tuning = frozenset(circuits)
        self._history.record(self._before(tuning))
        self.tuning = tuning

    def end(self) -> None:
        """List the circuits that were tuning by their new state."""
        if self.tuning:
            self._history.record(self._before(self.tuning))
            self.tuning = frozenset()

    def change(
        self, removed: Sequence[Circuit], added: Sequence[Circuit], failed: Mapping[Circuit, str] | None = None
    ) -> None:
        """Remove circuits, then set others; those in `failed` have failed, for the cause there.

        Raises `RefusalError` as `check_change` does.
        """
        failed = failed or {}
        dropped = self._superseded(removed, (*added, *failed)) if self.failed else frozenset()
        # Circuits that are tuning stay so in the list.
        before = self._before({*removed, *dropped, *added, *failed} - self.tuning)
        self.crossbar.change(self.lit(removed), added)
        self._history.record(before)
        if dropped or failed:
            self.failed = {c: cause for c, cause in self.failed.items() if c not in dropped} | dict(failed)
        for circuit in removed:
            self.owners.pop(circuit, None)
            self.locked.discard(circuit)

    def _superseded(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> frozenset[Circuit]:
        """Return the failed circuits that are removed, or whose ports are taken."""
        taken = {port for circuit in added for port in ends(circuit)}
        return frozenset(c for c in self.failed if c in removed or not taken.isdisjoint(ends(c)))

    def _state(self, circuit: Circuit) -> ListedState | None:
        locked, owner = circuit in self.locked, self.owners.get(circuit, "")
        if circuit in self.tuning:
            return ListedState(CircuitState.TUNING, "", locked, owner)
        if circuit in self.failed:
            return ListedState(CircuitState.FAILED, self.failed[circuit], locked, owner)
        if self.crossbar.output_of(circuit.input) == circuit.output:
            return ListedState(CircuitState.CONNECTED, "", locked, owner)
        return None

    def _before(self, circuits: Iterable[Circuit]) -> list[tuple[Circuit, ListedState | None]]:
        return [(circuit, self._state(circuit)) for circuit in circuits]
