"""Scenario files: built-in and user files, keys set by options, and the position of faults."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from blast_controller.configuration.schema import Location, SchemaError, line_of, read_toml
from blast_sim.base.provenance import text_digest
from blast_sim.base.wrong_input import InputError

SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """The text of a scenario and where it is from."""

    name: str
    text: str

    @property
    def description(self) -> dict[str, str]:
        """For the provenance of results."""
        return {"name": self.name, "text": self.text, "sha256": text_digest(self.text)}


def shipped_in(package: str) -> list[str]:
    """Return the names of the scenarios that come with the program as files of this package."""
    files = resources.files(package).iterdir()
    return sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX))


def find_in(package: str, name: str) -> ScenarioSource:
    """Return a scenario that comes with this package, or the file of this name. Raises InputError, OSError."""
    shipped = shipped_in(package)
    if name in shipped:
        return ScenarioSource(name, resources.files(package).joinpath(name + SUFFIX).read_text("utf-8"))
    path = Path(name)
    if not path.is_file():
        raise InputError(f"there is no scenario {name!r}: name a file, or one of {', '.join(shipped)}")
    try:
        return ScenarioSource(name, path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text (byte {error.start})") from None


def tables_of(source: ScenarioSource, settings: Mapping[str, object]) -> dict[str, object]:
    """Return the file's tables, with some (dotted) keys replaced. Raises SchemaError."""
    tables: dict[str, object] = read_toml(source.text)
    for key, value in settings.items():
        _put(tables, key, value)
    return tables


def parsed_value(text: str) -> object:
    """Return the value of a setting: a TOML value, or a word without quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def refusal(source: ScenarioSource, origins: Mapping[str, str], fault: SchemaError) -> InputError:
    """Return a fault with its place: FILE:LINE, or the option in `origins` that set the key."""
    return InputError(f"{_place(source, origins, fault.location)}: {str(fault).rstrip('.')}")


def _put(tables: dict[str, object], key: str, value: object) -> None:
    *path, last = key.split(".")
    here: dict[str, object] | list[object] = tables
    for step in path:
        inside = here[int(step)] if isinstance(here, list) and step.isdecimal() and int(step) < len(here) else None
        found = inside if inside is not None else here.setdefault(step, {}) if isinstance(here, dict) else None
        if not isinstance(found, dict | list):
            raise SchemaError(f"there is no table to set {key} in", tuple(key.split(".")))
        here = found
    if isinstance(here, list):
        if not last.isdecimal() or int(last) >= len(here):
            raise SchemaError(f"there is nothing to set at {key}", tuple(key.split(".")))
        here[int(last)] = value
    else:
        here[last] = value


def _place(source: ScenarioSource, origins: Mapping[str, str], location: Location) -> str:
    steps = tuple(str(step) for step in location)
    for key, origin in origins.items():
        path = tuple(key.split("."))
        if steps[: len(path)] == path or path[: len(steps)] == steps != ():
            return origin
    return f"{source.name}:{line_of(source.text, location)}"
