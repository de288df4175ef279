"""Tables as Parquet files, beside CSV: typed columns, compressed, with the provenance in the schema's metadata."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blast_base.extras import require
from blast_base.json_types import JsonValue
from blast_sim.base.files import whole_or_not
from blast_sim.base.provenance import Json, Provenance
from blast_sim.base.report import Row, columns_of
from blast_sim.base.wrong_input import InputError

MAGIC = b"PAR1"
KEY = b"blast.provenance"
"""The key of the metadata whose value is the provenance as JSON."""


def write_parquet(path: Path, rows: Sequence[Row], provenance: Provenance) -> None:
    """Write rows under their columns; a column is of numbers, truth values or texts. Raises OSError."""
    from pyarrow import parquet

    found = _table(rows).replace_schema_metadata({KEY: provenance.as_metadata().encode()})
    with whole_or_not(path) as unfinished:
        parquet.write_table(found, unfinished)


def read_parquet(path: Path) -> tuple[Json, list[Row]]:
    """Return the provenance and the rows of a file; a value that a row lacks is None.

    Raises InputError, OSError, NotInstalledError.
    """
    require("parquet", "pyarrow")
    import pyarrow
    from pyarrow import parquet

    try:
        found = parquet.read_table(path)
        record = json.loads((found.schema.metadata or {})[KEY])
    except (pyarrow.ArrowInvalid, KeyError, ValueError) as error:
        raise InputError(f"{path} is no Parquet file with the provenance of a result: {error}") from None
    return record, found.to_pylist()


def as_parquet_rows(rows: Sequence[Row]) -> list[Row]:
    """Return rows as they come out of a Parquet file."""
    found: list[Row] = _table(rows).to_pylist()
    return found


def _table(rows: Sequence[Row]) -> Any:
    import pyarrow

    return pyarrow.table({column: _column([row.get(column) for row in rows]) for column in columns_of(rows)})


def _column(values: list[JsonValue]) -> list[JsonValue]:
    """Convert the values to one type, as a column requires: numbers to float, other mixtures to text."""
    types = {type(value) for value in values if value is not None}
    if types == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(types) > 1:
        return [None if value is None else str(value) for value in values]
    return values
