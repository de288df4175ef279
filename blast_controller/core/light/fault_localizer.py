"""Fault localization: the hardware that keeps leaves dark, inferred from outputs and ports that are dark together.

A dark leaf has a bad output before it or a bad receiver behind it. The output is the first suspect, because another one
is easily tried; a port that is dark at a second output is faulty itself, and its first output is cleared. A port that
receives light from any output works. Without a splitter in between, the receiver is faulty if the same pair of ports is
dark twice. A tree that is dark as a whole has a bad splitter at its root or, if this repeats with a second splitter, a
bad transmitter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from blast_controller.core.light.light_tree import Leaf, LightTree
from blast_controller.core.model.fabric import OpticalPort
from blast_controller.core.model.identifiers import ElementId, is_output

NO_LIGHT = "no light"
TOO_MUCH_LOSS = "too much loss"
CIRCUIT_FAILED = "a failed cross-connect"
FAULTS = (NO_LIGHT, TOO_MUCH_LOSS, CIRCUIT_FAILED)
"""The beginnings of all reasons that this module reports."""


@dataclass(slots=True)
class Diagnosis:
    """Elements to take out of use, each with its reason, and elements that were suspected wrongly."""

    quarantine: dict[ElementId, str] = field(default_factory=dict)
    clear: set[ElementId] = field(default_factory=set)


class FaultLocalizer:
    """Remembers what was dark."""

    def __init__(self) -> None:
        self._dark: defaultdict[ElementId, Counter[ElementId]] = defaultdict(Counter)
        self._dark_roots: defaultdict[ElementId, set[ElementId]] = defaultdict(set)

    def dark(self, tree: LightTree, outputs: Collection[int], fault: str = NO_LIGHT) -> Diagnosis:
        """Diagnose leaves of `tree` that have a fault at these switch outputs; usually they are dark."""
        diagnosis = Diagnosis()
        sick = [leaf for leaf in tree.leaves if leaf.port.output in outputs]
        if tree.splitters and len(sick) == len(tree.leaves) > 1:
            self._examine_root(tree, diagnosis, fault)
            return diagnosis
        self._dark_roots.pop(tree.root.element, None)
        for hung in tree.splitters:
            served = [leaf for leaf in tree.leaves if leaf.feed in hung.splitter.outputs]
            if len(served) > 1 and all(leaf in sick for leaf in served):
                diagnosis.quarantine[hung.splitter.element] = f"{fault} at any of its outputs"
                sick = [leaf for leaf in sick if leaf not in served]
        for leaf in sick:
            self._examine(tree, leaf, diagnosis, fault)
        return diagnosis

    def _examine_root(self, tree: LightTree, diagnosis: Diagnosis, fault: str) -> None:
        seen = self._dark_roots[tree.root.element]
        seen.add(tree.splitters[0].splitter.element)
        if len(seen) > 1:
            diagnosis.quarantine[tree.root.element] = f"{fault} over {' and '.join(sorted(seen))}"
            diagnosis.clear |= seen
        else:
            diagnosis.quarantine[tree.splitters[0].splitter.element] = f"{fault} at any of its outputs"

    def _examine(self, tree: LightTree, leaf: Leaf, diagnosis: Diagnosis, fault: str) -> None:
        port, feed = leaf.port.element, tree.feed_element(leaf)
        seen = self._dark[port]
        seen[feed] += 1
        if len(seen) > 1 or (feed == tree.root.element and seen[feed] > 1):
            diagnosis.quarantine[port] = f"{fault} over {' and '.join(sorted(seen))}"
            diagnosis.clear |= {output for output in seen if is_output(output) and output not in diagnosis.quarantine}
        elif feed != tree.root.element:
            diagnosis.quarantine[feed] = f"{fault} toward {port}"

    def lit(self, root: OpticalPort, leaves: Iterable[Leaf]) -> None:
        """Note that these leaves receive light of `root`: their receivers and its transmitter work."""
        self._dark_roots.pop(root.element, None)
        for leaf in leaves:
            self._dark.pop(leaf.port.element, None)
