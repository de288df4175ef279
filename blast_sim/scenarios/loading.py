"""Reading scenarios: a shipped one by its name, or a file; with keys set from the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from blast_controller.config_schema import Location, SchemaFault, checked, line_of, read_toml
from blast_sim.scenarios.consistency import check
from blast_sim.scenarios.schema import Scenario
from blast_sim.wrong_input import WrongInput

SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a scenario and where it is from."""

    name: str
    text: str


def shipped() -> list[str]:
    """The names of the scenarios that come with the program."""
    files = resources.files("blast_sim.scenarios").iterdir()
    return sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX))


def find(name: str) -> Source:
    """A shipped scenario, or the file of this name. Raises WrongInput, OSError."""
    if name in shipped():
        return Source(name, resources.files("blast_sim.scenarios").joinpath(name + SUFFIX).read_text("utf-8"))
    path = Path(name)
    if not path.is_file():
        raise WrongInput(f"there is no scenario {name!r}: name a file, or one of {', '.join(shipped())}")
    try:
        return Source(name, path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise WrongInput(f"{name} is not UTF-8 text (byte {error.start})") from None


def load(source: Source, settings: Mapping[str, object] | None = None) -> Scenario:
    """The scenario, with some keys (dotted) set otherwise. Raises WrongInput, which names file and line, or the key."""
    given = settings or {}
    try:
        tables = read_toml(source.text)
        for key, value in given.items():
            _put(tables, key, value)
        scenario = checked(Scenario, tables)
        check(scenario)
    except SchemaFault as fault:
        raise WrongInput(f"{_place(source, given, fault.location)}: {str(fault).rstrip('.')}") from None
    return scenario


def parsed_value(text: str) -> object:
    """What stands right of the `=` of a setting: a TOML value, or a word that needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def _put(tables: dict[str, Any], key: str, value: object) -> None:
    *path, last = key.split(".")
    here: Any = tables
    for step in path:
        inside = here[int(step)] if isinstance(here, list) and step.isdecimal() and int(step) < len(here) else None
        here = inside if inside is not None else here.setdefault(step, {}) if isinstance(here, dict) else None
        if not isinstance(here, dict | list):
            raise SchemaFault(f"there is no table to set {key} in", tuple(key.split(".")))
    if isinstance(here, list):
        if not last.isdecimal() or int(last) >= len(here):
            raise SchemaFault(f"there is nothing to set at {key}", tuple(key.split(".")))
        here[int(last)] = value
    else:
        here[last] = value


def _place(source: Source, settings: Mapping[str, object], location: Location) -> str:
    steps = tuple(str(step) for step in location)
    for key in settings:
        path = tuple(key.split("."))
        if steps[: len(path)] == path or path[: len(steps)] == steps != ():
            return f"--set {key}"
    return f"{source.name}:{line_of(source.text, location)}"
