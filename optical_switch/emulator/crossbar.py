"""An optical crossbar: each input connects to at most one output, each output to at most one input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto

from optical_switch.model import Circuit, Port


class SwitchRefusal(Enum):
    """Why a switch refuses a command; each agent maps it to the codes of its protocol."""

    UNKNOWN_PORT = auto()
    IN_USE = auto()
    NOT_CONNECTED = auto()
    FAILED = auto()
    LOCKED = auto()
    SESSIONS_FULL = auto()
    WRONG_TARGET = auto()
    UNKNOWN_COMMAND = auto()
    INVALID_VALUE = auto()
    NOT_LOGGED_IN = auto()
    WRONG_USER = auto()


class RefusalError(Exception):
    """A refused command.

    Parameters
    ----------
    reason : SwitchRefusal
        Why it is refused.
    text : str
        Explanation, without a final period.
    ports : Iterable[Port]
        Ports that the switch blames.
    partial : bool
        True if a part of the command was done.
    """

    def __init__(self, reason: SwitchRefusal, text: str, ports: Iterable[Port] = (), *, partial: bool = False) -> None:
        self.reason = reason
        self.text = text
        self.ports = frozenset(ports)
        self.partial = partial
        super().__init__(text)


class Crossbar:
    """The circuits of a switch with ports 1..`inputs` and 1..`outputs`. A refused change changes nothing."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self._output_of: dict[int, int] = {}
        self._input_of: dict[int, int] = {}

    @property
    def circuits(self) -> tuple[Circuit, ...]:
        """All circuits, by input."""
        return tuple(Circuit(source, self._output_of[source]) for source in sorted(self._output_of))

    def output_of(self, source: int) -> int | None:
        """Return the output to which input `source` is connected, or None."""
        return self._output_of.get(source)

    def input_of(self, target: int) -> int | None:
        """Return the input to which output `target` is connected, or None."""
        return self._input_of.get(target)

    def check_disconnect(self, circuits: Sequence[Circuit]) -> None:
        """Raise `RefusalError` if `circuits` cannot be removed all together."""
        for circuit in circuits:
            self._check_ports(circuit)
            if self._output_of.get(circuit.input) != circuit.output:
                text = f"input {circuit.input} is not connected to output {circuit.output}"
                raise RefusalError(SwitchRefusal.NOT_CONNECTED, text, ends(circuit))
        if len(set(circuits)) != len(circuits):
            raise RefusalError(SwitchRefusal.NOT_CONNECTED, "a connection is named twice")

    def check_change(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        """Raise `RefusalError` if `removed` cannot be removed and then `added` made."""
        self.check_disconnect(removed)
        free = {circuit.input for circuit in removed}, {circuit.output for circuit in removed}
        taken: tuple[set[int], set[int]] = set(), set()
        for circuit in added:
            self._check_ports(circuit)
            if circuit.input in taken[0] or (circuit.input in self._output_of and circuit.input not in free[0]):
                text = f"input {circuit.input} is already connected"
                raise RefusalError(SwitchRefusal.IN_USE, text, ends(circuit)[:1])
            if circuit.output in taken[1] or (circuit.output in self._input_of and circuit.output not in free[1]):
                text = f"output {circuit.output} is already connected"
                raise RefusalError(SwitchRefusal.IN_USE, text, ends(circuit)[1:])
            taken[0].add(circuit.input)
            taken[1].add(circuit.output)

    def change(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        """Remove circuits, then add others. Raises `RefusalError` as `check_change` does."""
        self.check_change(removed, added)
        for circuit in removed:
            del self._output_of[circuit.input], self._input_of[circuit.output]
        for circuit in added:
            self._output_of[circuit.input] = circuit.output
            self._input_of[circuit.output] = circuit.input

    def _check_ports(self, circuit: Circuit) -> None:
        if not 1 <= circuit.input <= self.inputs:
            raise RefusalError(SwitchRefusal.UNKNOWN_PORT, f"there is no input {circuit.input}", ends(circuit)[:1])
        if not 1 <= circuit.output <= self.outputs:
            raise RefusalError(SwitchRefusal.UNKNOWN_PORT, f"there is no output {circuit.output}", ends(circuit)[1:])


def ends(circuit: Circuit) -> tuple[Port, Port]:
    """Return the input and the output of a circuit."""
    return Port("in", circuit.input), Port("out", circuit.output)
