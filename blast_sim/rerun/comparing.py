"""Bit-for-bit comparison of a recorded result with a new computation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from blast_base.json_types import JsonObject, JsonValue

Verdict = Literal["identical", "different", "not repeatable"]
MEASURED = "computation was measured"
ABSENT = "absent"
"""Stands for a value that one side does not have."""


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """A part of a result, computed again.

    Attributes
    ----------
    name : str
        A name that is unique among the parts.
    now : object
        The new value.
    reason : str
        The reason why it cannot be computed again; empty if it can.
    """

    name: str
    now: JsonValue = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of a part: the first differing field with both values, or the reason why there is none."""

    name: str
    verdict: Verdict
    field: str = ""
    in_file: JsonValue = None
    now: JsonValue = None
    reason: str = ""

    def as_dict(self) -> JsonObject:
        """Return the comparison as a JSON object."""
        return asdict(self)

    def __str__(self) -> str:
        if self.verdict == "identical":
            return f"{self.name}: identical"
        if self.verdict == "not repeatable":
            return f"{self.name}: not repeatable: {self.reason}"
        return f"{self.name}: different: {self.field} is {self.in_file!r} in the file and {self.now!r} now"


def compared(recorded: list[JsonValue], parts: list[ComparedPart]) -> list[Compared]:
    """Compare the parts of a file with those of now, in order."""
    if len(recorded) != len(parts):
        return [Compared("the results", "different", "number of results", len(recorded), len(parts))]
    return [_one(part, value) for value, part in zip(recorded, parts, strict=True)]


def _one(part: ComparedPart, recorded: object) -> Compared:
    if part.reason:
        return Compared(part.name, "not repeatable", reason=part.reason)
    found = next(_differences(recorded, part.now, ""), None)
    return Compared(part.name, "identical") if found is None else Compared(part.name, "different", *found)


def _differences(recorded: JsonValue, now: JsonValue, place: str) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Yield every field that differs, in order, with the recorded and the present value."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*recorded, *now]):
            yield from _differences(recorded.get(key, ABSENT), now.get(key, ABSENT), f"{place}.{key}".lstrip("."))
    elif isinstance(recorded, list) and isinstance(now, list):
        if len(recorded) != len(now):
            yield f"number of {place}", len(recorded), len(now)
        for number, both in enumerate(zip(recorded, now, strict=False)):
            yield from _differences(*both, f"{place}.{number}")
    elif type(recorded) is not type(now) or repr(recorded) != repr(now):
        # By their texts: no number equals NaN, and 0.0 equals -0.0.
        yield place, recorded, now
