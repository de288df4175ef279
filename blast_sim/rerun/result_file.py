"""Files that hold a result with its provenance: JSON, CSV, Parquet, and results of cells that were kept.

It loads nothing that calculates: the solver that a result was made with is to be chosen before.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Literal

from blast_base.json_types import JsonValue
from blast_sim.base.json_input import parse_json
from blast_sim.base.parquet import MAGIC, read_parquet
from blast_sim.base.provenance import FORMAT, Json, Plugin, text_digest
from blast_sim.base.report import Row, from_csv
from blast_sim.base.wrong_input import InputError, shown

SOLVER_MODULE, SOLVER_VARIABLE = "blast_sim.base.fair_solver", "BLAST_FAIR_SOLVER"
"""The module that chooses the solver when it is loaded, and the variable that it reads."""

ELEMENTS = {"seeds": int}
"""The types of what lists of options hold; of all others it is text."""

SHAPE: dict[tuple[str, ...], type | UnionType] = {
    ("blast",): dict,
    ("engine", "solver"): str,
    ("engine", "versions"): dict,
    ("engine", "rack_fabric"): str | None,
    ("request",): dict,
}
"""Required fields of every provenance."""

Form = Literal["JSON", "CSV", "Parquet"]


class UnusableResultError(InputError):
    """The file is not a result that can be computed again."""


class ScenarioChangedError(UnusableResultError):
    """The scenario in a result does not match its digest."""


class TraceMissingError(UnusableResultError):
    """The trace of a result cannot be read."""


class TraceChangedError(UnusableResultError):
    """The trace is not the one that a result was made from."""


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result: its `provenance`, and what it holds beside it; a table holds {"rows": […]}."""

    path: Path
    form: Form
    provenance: Json
    content: Json

    @property
    def kind(self) -> str:
        """The kind of the result."""
        return str(self.provenance.get("kind"))

    def part(self, *keys: str) -> JsonValue:
        """Return a part of the provenance. Raises UnusableResultError where there is none."""
        found: JsonValue = self.provenance
        for key in keys:
            if not isinstance(found, dict) or key not in found:
                raise self.unusable(f"its provenance has no {'.'.join(keys)}")
            found = found[key]
        return found

    def option(self, name: str, kind: type | UnionType) -> JsonValue:
        """Return an option of the request. Raises UnusableResultError if it is missing or has another type."""
        found = self.part("request", name)
        # JSON's true is an int to Python.
        wrong = not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool)
        if wrong or (isinstance(found, list) and any(type(one) is not ELEMENTS.get(name, str) for one in found)):
            raise self.unusable(f"the option {name} of its request cannot be {shown(found)}")
        return found

    def scenario_text(self) -> str:
        """Return the text of the scenario. Raises ScenarioChangedError, UnusableResultError."""
        text = str(self.part("request", "scenario", "text"))
        self.check_digest(text)
        return text

    def check_digest(self, text: str) -> None:
        """Raise ScenarioChangedError if this text does not match the digest of the scenario."""
        if text_digest(text) != self.part("request", "scenario", "sha256"):
            raise ScenarioChangedError(
                f"the scenario in {self.path} is not the one that its SHA-256 is of: the file was changed after it was "
                "written"
            )

    def plugins(self) -> list[Plugin]:
        """Return the plug-ins that took part. Raises UnusableResultError."""
        record = self.part("plugins")
        try:
            found = [Plugin(**one) for one in record]
        except TypeError:
            found = [Plugin("", "", "")]
        if any(one.kind not in ("policy", "method") or not isinstance(one.name, str) for one in found):
            raise self.unusable("its list of plug-ins is none")
        return found

    def rows(self, key: str) -> list[Row]:
        """Return the rows under a key. Raises UnusableResultError."""
        found = self.content.get(key)
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise self.unusable(f"it has no {key}")
        return found

    def unusable(self, reason: str) -> UnusableResultError:
        """Return the exception for a file that cannot be used."""
        return UnusableResultError(f"{self.path} cannot be computed again: {reason}")


def read_result(path: Path) -> ResultFile:
    """Return the result in a file. Raises UnusableResultError, OSError; for Parquet InputError, NotInstalledError."""
    data = path.read_bytes()
    if data.startswith(MAGIC):
        record, rows = read_parquet(path)
        result = ResultFile(path, "Parquet", record, {"rows": rows})
    elif data.startswith(b"#"):
        try:
            record, rows = from_csv(data.decode())
        except ValueError as error:
            raise UnusableResultError(f"{path} does not begin with the provenance of a result: {error}") from None
        result = ResultFile(path, "CSV", record, {"rows": rows})
    else:
        result = _from_json(path, data)
    if result.part("format") != FORMAT:
        raise result.unusable(f"its provenance has the format {shown(result.part('format'))}, and {FORMAT} is known")
    for keys, kind in SHAPE.items():
        if not isinstance(result.part(*keys), kind):
            raise result.unusable(f"{'.'.join(keys)} of its provenance cannot be {shown(result.part(*keys))}")
    return result


def prefer_solver(file: ResultFile) -> None:
    """Let this process and its children use the solver that a result was made with, where it is installed."""
    solver = file.part("engine", "solver")
    if SOLVER_MODULE in sys.modules:
        return
    if solver == "numpy" or (solver == "numba" and find_spec("numba") is not None):
        os.environ.setdefault(SOLVER_VARIABLE, solver)


def _from_json(path: Path, data: bytes) -> ResultFile:
    try:
        content = parse_json(data, "result")
    except InputError as error:
        raise UnusableResultError(f"{path} is no result with its provenance: {error}") from None
    record = content.pop("provenance", None) if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(record, dict):
        raise UnusableResultError(
            f"{path} has no provenance: results are written by blast sim with --json, --csv or --keep"
        )
    return ResultFile(path, "JSON", record, content)
