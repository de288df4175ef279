"""Reading scenarios of the flow-level simulator: a shipped one by its name, or a file."""

from __future__ import annotations

from collections.abc import Mapping

from blast_controller.configuration.schema import SchemaError, checked
from blast_sim.base.scenario_file import ScenarioSource, find_in, refusal, shipped_in, tables_of
from blast_sim.scenarios.consistency import check
from blast_sim.scenarios.schema import Scenario

HERE = "blast_sim.scenarios"


def shipped() -> list[str]:
    """Return the names of the scenarios that come with the program."""
    return shipped_in(HERE)


def find(name: str) -> ScenarioSource:
    """Return a shipped scenario, or the file of this name. Raises InputError, OSError."""
    return find_in(HERE, name)


def load(source: ScenarioSource, settings: Mapping[str, object] | None = None) -> Scenario:
    """Load the scenario, with some keys (dotted) set otherwise.

    Raises InputError, which names file and line, or the key.
    """
    given = settings or {}
    try:
        scenario = checked(Scenario, tables_of(source, given))
        check(scenario)
    except SchemaError as fault:
        raise refusal(source, {key: f"--set {key}" for key in given}, fault) from None
    return scenario
