"""One cell of a sweep of the rack fabric: a whole scenario, and what of it was swept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from blast_sim.base.provenance import Origin, text_digest
from blast_sim.base.report import Row
from blast_sim.fabric.scenario import Model

KIND = "fabric cell"


@dataclass(frozen=True)
class FabricCell:
    """`labels` are the swept keys with their values; `simulator` names the program's own version."""

    title: str
    model: Model
    events: float
    memory_bytes: int
    simulator: str
    labels: Row = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A name of the cell made from all that matters to its result."""
        text = json.dumps([self.simulator, self.model], sort_keys=True)
        return text_digest(text)[:32]

    @property
    def origin(self) -> Origin:
        """The request that gives the same result again."""
        scenario = {"model": self.model, "sha256": text_digest(json.dumps(self.model, sort_keys=True))}
        seed = self.model.get("seed")
        seeds = (seed,) if isinstance(seed, int) else ()
        return Origin(KIND, {"scenario": scenario}, seeds, rack_fabric=self.simulator)

    @property
    def load(self) -> float:
        """Its events, as the simulator estimates them."""
        return self.events
