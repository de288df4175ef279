"""A TOML text checked against a schema: every fault is one sentence, and has its place in the text."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
import types
import typing
from collections.abc import Iterator
from datetime import date, time
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Location = tuple[int | str, ...]
Model = TypeVar("Model", bound=BaseModel)


class SchemaError(Exception):
    """A text that is not TOML, or violates the schema. `location` has the keys and indexes that lead to the fault."""

    def __init__(self, sentence: str, location: Location = ()) -> None:
        super().__init__(sentence)
        self.location = location


def read_toml(text: str) -> dict[str, object]:
    """Return the tables of a text. Raises SchemaError."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise SchemaError("not TOML that can be parsed: nested too deeply.") from error
    except ValueError as error:
        # Not only TOMLDecodeError: Python refuses numbers of thousands of digits by itself.
        raise SchemaError(f"not TOML: {error}.") from error


def checked(model: type[Model], tables: object) -> Model:
    """Return the tables as the model.

    Values are taken as they are written: "4" is no number, and true is not 1. Pydantic is as strict as that with JSON
    only, where it still makes paths and addresses of strings.

    Raises SchemaError: a misspelled key first, since it is why another one is missing.
    """
    try:
        text = json.dumps(tables)
    except ValueError as error:
        # Python writes no numbers of thousands of digits.
        raise SchemaError(f"a number is too long: {error}.") from error
    except TypeError:
        text = ""
    for location in _dates(tables):
        raise SchemaError(f"{_place(location)}: no key has a date or time as value.", location)
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
        raise SchemaError(_sentence(model, first), first["loc"]) from error


def _dates(value: object, location: Location = ()) -> Iterator[Location]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _dates(inner, (*location, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _dates(inner, (*location, number))
    elif isinstance(value, date | time):
        yield location


def _sentence(model: type[BaseModel], fault: ErrorDetails) -> str:
    location = fault["loc"]
    place = _place(location)
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(location[-1]), _known_keys(model, location[:-1]), n=1, cutoff=0.4)
        return f"unknown key {place}; " + (f"did you mean {near[0]}?" if near else "remove it.")
    if fault["type"] == "missing":
        return f"the key {place} is missing."
    message = fault["msg"].removeprefix("Value error, ")
    text = f"{message[0].lower()}{message[1:]} (found {fault['input']!r})."
    return f"{place}: {text}" if place else text


def _place(location: Location) -> str:
    text = ""
    for step in location:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _known_keys(root: type[BaseModel], location: Location) -> list[str]:
    model = root
    for step in location:
        if isinstance(step, str) and step in model.model_fields:
            model = _model_in(model.model_fields[step].annotation) or model
    return list(model.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    if (
        isinstance(annotation, type)
        and not isinstance(annotation, types.GenericAlias)
        and issubclass(annotation, BaseModel)
    ):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _model_in(part))), None)


# ------------------------------------------------------------------------------------------------------ lines

# Not a row of numbers within a list.
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\],]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


def line_of(text: str, location: Location) -> int:
    """Return the line (from 1) of the key at a location, or of its nearest existing table; else 1."""
    best, found = 0, 1
    table: Location = ()
    counts: dict[Location, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _numbered(_names(header[2]), counts, many=header[1] == "[[")
            place = table
        elif key := _KEY.match(line):
            place = table + _names(key[1])
        else:
            continue
        common = _common(place, location)
        if common > best:
            best, found = common, number
    return found


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(bare or quoted for bare, quoted in re.findall(r"""([\w-]+)|["']([^"']*)["']""", dotted))


def _numbered(names: tuple[str, ...], counts: dict[Location, int], many: bool) -> Location:
    """Return the location of a table, with the places of those before it in arrays of tables."""
    location: Location = ()
    for depth, name in enumerate(names):
        location += (name,)
        last = depth == len(names) - 1
        if many and last:
            counts[location] = counts.get(location, -1) + 1
        if location in counts:
            location += (counts[location],)
    return location


def _common(place: Location, location: Location) -> int:
    """Return how many steps of a location a place in the text covers; a place beside it covers only its table."""
    for length, (here, there) in enumerate(zip(place, location, strict=False)):
        if here != there:
            return length if length == len(place) else 0
    return min(len(place), len(location))
