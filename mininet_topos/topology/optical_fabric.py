"""The optical data plane of the lab: fibers, passive splitters and the crossbar of an optical circuit switch.

Theory of operation. Every port of the switch is one netdev: a frame that arrives on it is light at input n, a frame
sent out of it is light at output n. A circuit is one `tc` filter on the input's ingress that redirects every frame to
the output, so circuits are unidirectional; a port without a filter is dark, because the namespace that holds the
netdevs has no addresses. A splitter is a filter created once, on the far end of the fiber that feeds it, that mirrors
to all its outputs. Standard library only: the switch's agent and `mn --custom` run this too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from mininet_topos.kernel.errors import FabricChangeError, FabricConflictError, HostError
from mininet_topos.kernel.names import Names

Circuit = tuple[int, int]
"""(input, output) of the optical switch, numbers from 1."""

RunTc = Callable[[list[str]], None]
"""Executes lines by `tc -batch` in the namespace that holds the switch; raises `HostError` when tc refuses one."""

ACTIONS_PER_FILTER = 30
"""The kernel accepts 32 actions in one filter; wider splitters take several filters, chained by `continue`."""


@dataclass(frozen=True)
class EmulatedSplitter:
    """A passive 1:N splitter, wired to one optical switch.

    The switch's output `input` feeds it; its outputs enter the switch at the inputs `outputs` (port numbers from 1).
    """

    name: str
    input: int
    outputs: tuple[int, ...]

    @property
    def fan_out(self) -> int:
        """N, the number of outputs."""
        return len(self.outputs)

    @property
    def wiring(self) -> str:
        """`INPUT=OUTPUT,…`, as the switch's agent takes it on its command line."""
        return f"{self.input}={','.join(map(str, self.outputs))}"

    @classmethod
    def parse(cls, wiring: str) -> EmulatedSplitter:
        """Return the splitter of a text in the form of `wiring`.

        Raises `ValueError` for text of another form.
        """
        feed, _, outputs = wiring.partition("=")
        return cls(f"at {feed}", int(feed), tuple(int(output) for output in outputs.split(",")))


class OpticalFabric:
    """The crossbar of one optical switch with ports 1..`ports`, and the splitters wired to it.

    `names` names their netdevs.
    """

    def __init__(
        self, names: Names, ports: int, splitters: Iterable[EmulatedSplitter], run_tc: Callable[[list[str]], None]
    ) -> None:
        self._names = names
        self._ports = range(1, ports + 1)
        self._splitters = tuple(splitters)
        self._run_tc = run_tc
        self._circuits: dict[int, int] = {}

    @property
    def circuits(self) -> Mapping[int, int]:
        """Input → output of every circuit that is set."""
        return dict(self._circuits)

    def prepare(self) -> None:
        """Make every input dark and put the splitters in place, whatever was there before. Raises `HostError`."""
        dark = (line for port in self._ports for line in _dark(self._names.ocs_port(port)))
        split = (line for splitter in self._splitters for line in mirror_set(splitter, self._names))
        self._run_tc([*dark, *split])
        self._circuits = {}

    def apply(self, removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        """Remove and add circuits in one `tc` call; every removed one is dark before any added one is lit.

        Raises `FabricConflictError` (nothing done) for an unknown port, a busy input or output, a circuit to remove
        that is not set, or a loop through splitters; raises `FabricChangeError` (all as before) when the kernel
        refuses.
        """
        changed = changed_circuits(self._circuits, self._ports, removed, added)
        refuse_loops(changed, self._splitters)
        lines = [*(self._off(i) for i, _ in removed), *(self._on(i, o) for i, o in added)]
        if not lines:
            return
        try:
            self._run_tc(lines)
        except HostError as refusal:
            self._restore({i for i, _ in (*removed, *added)})
            raise FabricChangeError(f"the optical fabric is unchanged: {refusal}") from refusal
        self._circuits = changed

    def _restore(self, inputs: Collection[int]) -> None:
        """Clear and relight each of these inputs.

        `tc` stops at the first bad line, so it is unknown which lines it executed.
        """
        dark = (line for i in inputs for line in _dark(self._names.ocs_port(i)))
        lit = (self._on(i, self._circuits[i]) for i in inputs if i in self._circuits)
        self._run_tc([*dark, *lit])

    def _on(self, input_port: int, output_port: int) -> str:
        source, target = self._names.ocs_port(input_port), self._names.ocs_port(output_port)
        match = "prio 1 handle 800::800 protocol all u32 match u32 0 0"
        return f"filter replace dev {source} parent ffff: {match} action mirred egress redirect dev {target}"

    def _off(self, input_port: int) -> str:
        return f"filter del dev {self._names.ocs_port(input_port)} parent ffff: prio 1 protocol all u32"


def changed_circuits(
    circuits: Mapping[int, int], ports: Collection[int], removed: Sequence[Circuit], added: Sequence[Circuit]
) -> dict[int, int]:
    """Return the circuits after a change.

    Raises `FabricConflictError` if the change contradicts the state or itself.
    """
    result = dict(circuits)
    for source, target in removed:
        _require(result.get(source) == target, f"there is no circuit from input {source} to output {target}")
        del result[source]
    busy_outputs = set(result.values())
    for source, target in added:
        _require(source in ports, f"there is no input {source}")
        _require(target in ports, f"there is no output {target}")
        _require(source not in result, f"input {source} is busy")
        _require(target not in busy_outputs, f"output {target} is busy")
        result[source] = target
        busy_outputs.add(target)
    return result


def refuse_loops(circuits: Mapping[int, int], splitters: Iterable[EmulatedSplitter]) -> None:
    """Raise `FabricConflictError` when light could return to a splitter it has passed.

    Glass would only lose power in a loop; emulated light has no loss and would take the machine down.
    """
    outputs = {splitter.input: splitter.outputs for splitter in splitters}
    fed = {
        out: {circuits[output] for output in output_inputs if circuits.get(output) in outputs}
        for out, output_inputs in outputs.items()
    }
    try:
        TopologicalSorter(fed).prepare()
    except CycleError as loop:
        raise FabricConflictError(
            f"light would go in a circle through the splitters at outputs {loop.args[1]}"
        ) from None


def mirror_set(splitter: EmulatedSplitter, names: Names) -> list[str]:
    """Return the `tc -batch` lines of a splitter: light from the switch leaves by every output."""
    return copied(names.splitter_side(splitter.input), [names.splitter_side(output) for output in splitter.outputs])


def copied(source: str, outputs: Sequence[str]) -> list[str]:
    """Return the `tc -batch` lines that copy all that enters by the netdev `source` to all `outputs`."""
    *others, last = (f"dev {output}" for output in outputs)
    copies = [*(f"action mirred egress mirror {output}" for output in others), f"action mirred egress redirect {last}"]
    lines = _dark(source)
    for start in range(0, len(copies), ACTIONS_PER_FILTER):
        group = copies[start : start + ACTIONS_PER_FILTER]
        goes_on = " continue" if start + ACTIONS_PER_FILTER < len(copies) else ""
        match = f"prio {start // ACTIONS_PER_FILTER + 1} protocol all u32 match u32 0 0"
        lines.append(f"filter add dev {source} parent ffff: {match} {' '.join(group)}{goes_on}")
    return lines


def _dark(netdev: str) -> list[str]:
    return [f"qdisc replace dev {netdev} handle ffff: ingress", f"filter del dev {netdev} parent ffff:"]


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise FabricConflictError(otherwise)
