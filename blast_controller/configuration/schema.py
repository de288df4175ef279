"""A TOML text checked against a schema: every fault is one sentence, and has its place in the text."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import TypeVar

from pydantic import BaseModel, Tag, ValidationError
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
        location, table, others = _walk(model, first["loc"])
        raise SchemaError(_sentence(first, location, table, others), location) from error


def _dates(value: object, location: Location = ()) -> Iterator[Location]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _dates(inner, (*location, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _dates(inner, (*location, number))
    elif isinstance(value, date | time):
        yield location


def _sentence(fault: ErrorDetails, location: Location, table: type[BaseModel], others: Members) -> str:
    place = _place(location)
    if fault["type"] == "extra_forbidden":
        owners = [tag for tag, other in others.items() if location[-1] in other.model_fields]
        if owners:
            return f"unknown key {place}: only {' and '.join(sorted(owners))} has it."
        near = difflib.get_close_matches(str(location[-1]), list(table.model_fields), n=1, cutoff=0.4)
        return f"unknown key {place}; " + (f"did you mean {near[0]}?" if near else "remove it.")
    if fault["type"] == "missing":
        return f"the key {place} is missing."
    message = fault["msg"].removeprefix("Value error, ")
    found = "" if isinstance(fault["input"], dict) else f" (found {fault['input']!r})"
    text = f"{message[0].lower()}{message[1:]}{found}."
    return f"{place}: {text}" if place else text


def _place(location: Location) -> str:
    text = ""
    for step in location:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if text else step
    return text


Members = Mapping[str, type[BaseModel]]
"""The models of a union by their tags."""


def _walk(root: type[BaseModel], path: Location) -> tuple[Location, type[BaseModel], Members]:
    """Return a location as the text has it, the model of its table, and the other models that this could have.

    Pydantic's locations name the member of a union, which is no key of the text.
    """
    model, members, others = root, dict[str, type[BaseModel]](), dict[str, type[BaseModel]]()
    location: Location = ()
    for step in path:
        if isinstance(step, str) and step in members:
            model, members, others = members[step], {}, members
            continue
        location += (step,)
        if isinstance(step, str) and step in model.model_fields:
            annotation = model.model_fields[step].annotation
            members = _members(annotation)
            if (inner := _model_in(annotation)) is not None:
                model, others = inner, {}
    return location, model, others


def _members(annotation: object) -> dict[str, type[BaseModel]]:
    """Return the models of a union by their tags."""
    model = _model_in(annotation)
    tags = [data.tag for data in getattr(annotation, "__metadata__", ()) if isinstance(data, Tag)]
    if model is not None and tags:
        return {tags[0]: model}
    return {tag: found for part in typing.get_args(annotation) for tag, found in _members(part).items()}


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
