"""One cell of a scenario: a method on a network beside a background, with a seed. What is run, sent and kept."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

from blast_sim.base.report import Row
from blast_sim.scenarios.schema import Scenario

CODE = ("blast_sim", "algorithms", "blast_controller.core")
"""The packages that results come from."""


@cache
def code_version() -> str:
    """A name of the program's own text, so that what an earlier version has kept is not taken for its results."""
    digest = hashlib.sha256()
    for package in CODE:
        for folder in importlib.import_module(package).__path__:
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Effort:
    """How to calculate: `compute` as `--compute` says, and whether rates may be computed in steps."""

    compute: str = "measured"
    stepped: bool = False


@dataclass(frozen=True)
class Cell:
    """`labels` are the swept keys and the seed, where there are several, with their values."""

    scenario: Scenario
    method: str
    network: str
    background: str
    policy: str = ""
    seed: int = 0
    effort: Effort = Effort()
    labels: Row = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What is simulated."""
        return self.scenario.title

    @property
    def load(self) -> float:
        """How long it takes, compared with other cells."""
        return self.scenario.background.racks_each_way[self.background]

    @property
    def key(self) -> str:
        """A name of the cell made from its whole content; what does not matter to its result is left out."""
        told = self.scenario.model_dump(mode="json", exclude={"title", "columns", "run"})
        if self.method != "blast":
            del told["light"]
        own = [code_version(), self.method, self.network, self.background, self.policy, self.seed]
        effort = [self.effort.compute, self.effort.stepped]
        text = json.dumps([told, own, effort, sorted(self.labels.items())], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def cells_of(scenario: Scenario, seeds: Sequence[int], effort: Effort, labels: Row | None = None) -> Iterator[Cell]:
    """Every combination that the scenario asks for; only Blast's differ by policy."""
    for run in scenario.run:
        for method, network, background in product(run.methods, run.networks, run.backgrounds):
            for policy, seed in product(run.policies if method == "blast" else ("",), seeds):
                shown = dict(labels or {})
                if len(run.policies) > 1:
                    shown["policy"] = policy
                if len(seeds) > 1:
                    shown["seed"] = seed
                yield Cell(scenario, method, network, background, policy, seed, effort, shown)
