"""Scenarios of the rack fabric: TOML with the JSON keys of `rack-fabric`, and keys for sweeps.

`title` is for readers, and `[sweep]` has keys (dotted, in quotes) with their values. The simulator alone interprets and
checks all other keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blast_base.json_types import JsonObject
from blast_controller.configuration.schema import Location, SchemaError
from blast_sim.base.scenario_file import ScenarioSource, tables_of
from blast_sim.base.wrong_input import shown

HERE = "blast_sim.fabric.scenarios"
Model = JsonObject
"""The input of the simulator, or one of its tables, ready to be written as JSON."""

MIN_INTEGER, MAX_INTEGER = -(2**63), 2**64 - 1


@dataclass(frozen=True, slots=True)
class FabricScenario:
    """A scenario file as read; the keys of `sweep` are not yet applied."""

    title: str
    sweep: Mapping[str, list[object]]
    model: Model


def load(source: ScenarioSource, settings: Mapping[str, object]) -> FabricScenario:
    """Load the scenario, with some keys (dotted) set otherwise. Raises SchemaError."""
    tables = tables_of(source, settings)
    title, sweep = tables.pop("title", source.name), tables.pop("sweep", {})
    if not isinstance(title, str):
        raise SchemaError("title must be a text", ("title",))
    if not isinstance(sweep, dict):
        raise SchemaError("sweep must be a table of keys and their values", ("sweep",))
    for key, values in sweep.items():
        if not isinstance(values, list) or not values:
            raise SchemaError(
                f'{key} must have a list of values here, and a dotted key quotes, as in "a.b"', ("sweep", key)
            )
    for value, location in _values(tables, ()):
        _require_json_value(value, location)
    return FabricScenario(title, sweep, tables)


def dotted(location: Location) -> str:
    """Return a location as `--set` names it."""
    return ".".join(map(str, location))


def _values(value: object, location: Location) -> Iterator[tuple[object, Location]]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from _values(inside, (*location, key))
    elif isinstance(value, list):
        for place, inside in enumerate(value):
            yield from _values(inside, (*location, place))
    else:
        yield value, location


def _require_json_value(value: object, location: Location) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(f"{dotted(location)} must be a finite number, not {value}", location)
    if isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        raise SchemaError(f"{dotted(location)} must be a number of 64 bits", location)
    if not isinstance(value, str | int | float):
        raise SchemaError(f"{dotted(location)} must be a number, a text or a truth value, not {shown(value)}", location)
