"""One cell of a scenario, the unit of execution: a method on a network with a background and a seed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product

from blast_sim.base.provenance import Origin, Plugin, text_digest
from blast_sim.base.report import Row
from blast_sim.base.software import Software, software
from blast_sim.base.wrong_input import InputError, shown
from blast_sim.plugins.loading import plugins_of
from blast_sim.scenarios.schema import Scenario

KIND = "flow cell"


@dataclass(frozen=True, slots=True)
class Effort:
    """The accuracy of a calculation: `compute` as in `--compute`, and whether rates may be computed in steps."""

    compute: str = "measured"
    stepped: bool = False


@dataclass(frozen=True)
class FlowCell:
    """`labels` are the swept keys and the seed, where there are several, with their values.

    Its result belongs to the `software` and to the source of the `plugins` of the process that has made the cell, which
    every worker has to have.
    """

    scenario: Scenario
    method: str
    network: str
    background: str
    policy: str = ""
    seed: int = 0
    effort: Effort = Effort()
    labels: Row = field(default_factory=dict)
    software: Software = field(default_factory=software)
    plugins: tuple[Plugin, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plugins", plugins_of(self.policy, self.method))

    @property
    def title(self) -> str:
        """The title of the scenario."""
        return self.scenario.title

    @property
    def load(self) -> float:
        """The estimated duration, relative to other cells."""
        return self.scenario.background.racks_per_direction[self.background]

    @property
    def key(self) -> str:
        """A name from the cell's whole content, without fields that do not affect its result.

        Raises InputError for a policy whose source is not in a file: its stored results could not be distinguished from
        those of another policy.
        """
        for plugin in self.plugins:
            if not plugin.sha256:
                raise InputError(
                    f"results of the policy {shown(plugin.name)} cannot be stored, because its class is not in a file: "
                    "move it into a module, and name it as module:Class"
                )
        content = self.scenario.model_dump(mode="json", exclude={"title", "columns", "run"})
        if self.method != "blast":
            del content["light"]
        own = [asdict(self.software), self.method, self.network, self.background, self.policy, self.seed]
        effort = [self.effort.compute, self.effort.stepped]
        plugins = [asdict(plugin) for plugin in self.plugins]
        text = json.dumps([content, own, plugins, effort, sorted(self.labels.items())], sort_keys=True, default=str)
        return text_digest(text)[:32]

    @property
    def origin(self) -> Origin:
        """The request that gives the same result again."""
        model = self.scenario.model_dump(mode="json")
        request = {
            "scenario": {"model": model, "sha256": text_digest(json.dumps(model, sort_keys=True))},
            "method": self.method,
            "network": self.network,
            "background": self.background,
            "policy": self.policy,
            "seed": self.seed,
            "compute": self.effort.compute,
            "stepped": self.effort.stepped,
        }
        return Origin(KIND, request, (self.seed,), self.plugins)


def cells_of(scenario: Scenario, seeds: Sequence[int], effort: Effort, labels: Row | None = None) -> Iterator[FlowCell]:
    """Yield a cell for every combination that the scenario requests; only cells of Blast differ by policy."""
    for run in scenario.run:
        for method, network, background in product(run.methods, run.networks, run.backgrounds):
            for policy, seed in product(run.policies if method == "blast" else ("",), seeds):
                shown = dict(labels or {})
                if len(run.policies) > 1:
                    shown["policy"] = policy
                if len(seeds) > 1:
                    shown["seed"] = seed
                yield FlowCell(scenario, method, network, background, policy, seed, effort, shown)
