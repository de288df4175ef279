"""An optical crossbar: each input connects to at most one output, each output to at most one input."""

from __future__ import annotations

from collections.abc import Sequence

from tl1_driver.protocol.circuits import Circuit

UNKNOWN_PORT = "IIAC"
BUSY = "SNVS"
NO_SUCH_CIRCUIT = "SDNC"


class RefusalError(Exception):
    """A refused command: a TL1 error code and a sentence.

    No refusal of a real switch is on record; the codes are the usual TL1 codes for these cases. `completion` is DENY,
    or PRTL if a part was done.
    """

    def __init__(self, code: str, text: str, completion: str = "DENY") -> None:
        self.code = code
        self.text = text
        self.completion = completion
        super().__init__(f"{code}: {text}")


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

    def check_connect(self, circuits: Sequence[Circuit]) -> None:
        """Raise `RefusalError` if `circuits` cannot be added all together."""
        self.check_change((), circuits)

    def check_disconnect(self, circuits: Sequence[Circuit]) -> None:
        """Raise `RefusalError` if `circuits` cannot be removed all together."""
        for circuit in circuits:
            self._check_ports(circuit)
            if self._output_of.get(circuit.input) != circuit.output:
                raise RefusalError(
                    NO_SUCH_CIRCUIT, f"input {circuit.input} is not connected to output {circuit.output}"
                )
        if len(set(circuits)) != len(circuits):
            raise RefusalError(NO_SUCH_CIRCUIT, "a connection is named twice")

    def check_change(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        """Raise `RefusalError` if `removed` cannot be removed and then `added` made."""
        self.check_disconnect(removed)
        free = {circuit.input for circuit in removed}, {circuit.output for circuit in removed}
        taken: tuple[set[int], set[int]] = set(), set()
        for circuit in added:
            self._check_ports(circuit)
            if circuit.input in taken[0] or (circuit.input in self._output_of and circuit.input not in free[0]):
                raise RefusalError(BUSY, f"input {circuit.input} is already connected")
            if circuit.output in taken[1] or (circuit.output in self._input_of and circuit.output not in free[1]):
                raise RefusalError(BUSY, f"output {circuit.output} is already connected")
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
            raise RefusalError(UNKNOWN_PORT, f"there is no input {circuit.input}")
        if not 1 <= circuit.output <= self.outputs:
            raise RefusalError(UNKNOWN_PORT, f"there is no output {circuit.output}")
