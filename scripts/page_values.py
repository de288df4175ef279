"""The measured and simulated values of the pages in docs/: definitions, results, and positions.

A value has an id, `OUTPUT.NAME`, in an invisible comment of the page. In a sentence the comment follows the number:
`0.265<!--fig4.blast-none-->`. A table is preceded by `<!-- values OUTPUT.NAME -->`; each number in it, except in the
first column, has the id `OUTPUT.NAME.ROW.COLUMN`, from the words of the row and the column, followed by `.1`, `.2` …
if a cell has several.

docs/values.toml defines each output (the command whose JSON it is) and its values (the position in that JSON); a
command with `{out}` writes CSV files into a folder instead, whose rows are found by file name. A name with
parameters, `sites.{root}.{method}`, defines many values. docs/values.json has the results of the last run.
`scripts/refresh-figures` runs the commands, writes docs/values.json and the pages; `tests/project/test_page_values.py`
fails if they differ.
"""

from __future__ import annotations

import csv
import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DEFINITIONS = ROOT / "docs" / "values.toml"
FOUND = ROOT / "docs" / "values.json"
FOLDER = "{out}"
"""In a command: a folder, whose CSV files are the result."""

_PARAMETER = re.compile(r"\{(\w+)\}")
_INLINE = re.compile(r"(?P<text>[^\s|(<>–]+)<!--(?P<id>[a-z0-9-]+\.[\w.-]+)-->")
_ABOVE_TABLE = re.compile(
    r"^<!-- values (?P<id>[a-z0-9-]+\.[\w.-]+) -->\n\|(?P<head>.*)\n\|[-|]+\n(?P<body>(?:\|.*\n)+)", re.M
)
_NUMBER = re.compile(r"(?<![\w.])[+−]?\d(?:[\d,]*\d)?(?:\.\d+)?")


class DefinitionError(Exception):
    """docs/values.toml or a page is wrong. One sentence."""


@dataclass(frozen=True, slots=True)
class Value:
    """A number in the JSON of an output.

    Parameters
    ----------
    path
        The number, as a JMESPath expression.
    over, minus
        Expressions of numbers that it is divided by, or that are subtracted from it first.
    text
        A format string for the number on the page.
    """

    path: str
    over: str = ""
    minus: str = ""
    text: str = "{:g}"


@dataclass(frozen=True, slots=True)
class Output:
    """A command that prints JSON, and its values by name; names may have parameters.

    `simulated` results are the same on every machine; others are measured, and change from run to run. `reads` are
    files of measurements that the command reads: with other contents its values are out of date.
    """

    name: str
    command: str
    simulated: bool
    minutes: float
    values: Mapping[str, Value]
    reads: tuple[str, ...] = ()

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 digests of the files that it reads. Raises OSError."""
        return {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in self.reads}

    def value(self, name: str) -> Value:
        """Return what defines the value of this name. Raises DefinitionError where nothing does."""
        for pattern, value in self.values.items():
            if found := _pattern(pattern).fullmatch(name):
                given = found.groupdict()
                path, over, minus = (_filled(text, given) for text in (value.path, value.over, value.minus))
                return replace(value, path=path, over=over, minus=minus)
        raise DefinitionError(f"values.toml does not define {self.name}.{name}")


def outputs(path: Path = DEFINITIONS) -> dict[str, Output]:
    """Read the definitions. Raises DefinitionError, OSError."""
    try:
        return {
            name: Output(
                name,
                table["command"],
                table["simulated"],
                table["minutes"],
                {key: Value(**value) for key, value in table["values"].items()},
                tuple(table.get("reads", ())),
            )
            for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items()
        }
    except (KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise DefinitionError(f"{path.name}: {error}") from error


def _pattern(name: str) -> re.Pattern[str]:
    """Return what matches the names that a name with parameters stands for."""
    parts = _PARAMETER.split(name)
    return re.compile("".join(f"(?P<{part}>[^.]+)" if odd % 2 else re.escape(part) for odd, part in enumerate(parts)))


def _filled(path: str, parameters: Mapping[str, str]) -> str:
    return _PARAMETER.sub(lambda one: parameters.get(one[1], one[0]), path)


def number(value: Value, result: object) -> float:
    """Find a value in the JSON of its output. Raises DefinitionError where there is no number."""
    found = _look_up(value.path, result)
    if value.minus:
        found -= _look_up(value.minus, result)
    return found / _look_up(value.over, result) if value.over else found


def _look_up(path: str, result: object) -> float:
    # Only this function needs the library, and most that import this module never call it.
    import jmespath

    found = jmespath.search(path, result)
    if isinstance(found, list) and len(found) == 1:
        (found,) = found
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise DefinitionError(f"{path} is {found!r}, which is no number")
    return float(found)


def tables(folder: Path) -> dict[str, list[dict[str, object]]]:
    """Read every CSV file of a folder: its rows, by the name of the file."""
    return {path.stem: list(_rows(path)) for path in sorted(folder.glob("*.csv"))}


def _rows(path: Path) -> Iterator[dict[str, object]]:
    with path.open(newline="", encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#"))
        for row in csv.DictReader(lines):
            yield {column: _read(text) for column, text in row.items() if text != ""}


def _read(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class Mark:
    """A value on a page: its id, and from where to where its text goes."""

    id: str
    start: int
    end: int


def marks(page: str) -> list[Mark]:
    """Return the values on a page, in order."""
    inline = [Mark(one["id"], one.start("text"), one.end("text")) for one in _INLINE.finditer(page)]
    tables = [mark for table in _ABOVE_TABLE.finditer(page) for mark in _of_table(table)]
    return sorted([*inline, *tables], key=lambda mark: mark.start)


def _of_table(table: re.Match[str]) -> Iterator[Mark]:
    columns = [_slug(cell) for cell in table["head"].strip("|").split("|")]
    start = table.start("body")
    for line in table["body"].splitlines(keepends=True):
        place = start + 1
        row = ""
        for number, cell in enumerate(line.strip().strip("|").split("|")):
            found = list(_NUMBER.finditer(cell)) if number else []
            row = row or _slug(cell)
            for count, one in enumerate(found, 1):
                name = ".".join([table["id"], row, columns[number], *([str(count)] if len(found) > 1 else [])])
                yield Mark(name, place + one.start(), place + one.end())
            place += len(cell) + 1
        start += len(line)


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def rewritten(page: str, texts: Mapping[str, str]) -> str:
    """Return the page with these texts at the ids that are among them."""
    for mark in reversed(marks(page)):
        page = page[: mark.start] + texts.get(mark.id, page[mark.start : mark.end]) + page[mark.end :]
    return page


def pages() -> list[Path]:
    """Return the pages that may hold values."""
    return [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks" / "README.md"]


def values_on_pages() -> dict[str, list[str]]:
    """Return the names of the values that stand on pages, by output."""
    found: dict[str, dict[str, None]] = {}
    for page in pages():
        for mark in marks(page.read_text(encoding="utf-8")):
            output, _, value = mark.id.partition(".")
            found.setdefault(output, {})[value] = None
    return {output: list(names) for output, names in found.items()}


def texts(definitions: Mapping[str, Output], found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the text of each value that was found, by id. Raises DefinitionError for one that is not defined."""
    return {
        f"{output}.{name}": definitions[output].value(name).text.format(number)
        for output, result in found.items()
        if output in definitions
        for name, number in result["values"].items()
    }
