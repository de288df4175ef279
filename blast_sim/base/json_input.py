"""User-written JSON: rejects input that Python's reader accepts but no format here allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NoReturn

from blast_sim.base.wrong_input import InputError, first_repeated, shown

Pairs = Sequence[tuple[str, object]]


def parse_json(data: bytes, kind: str, place: Callable[[Pairs], str] = lambda pairs: "") -> object:
    """Return the value of these bytes; reject duplicate keys, NaN and infinity.

    `kind` names the expected content in errors; `place` returns a prefix for errors in a table, from its pairs of key
    and value. Raises InputError.
    """

    def table(pairs: list[tuple[str, object]]) -> dict[str, object]:
        twice = first_repeated(key for key, _ in pairs)
        if twice is not None:
            raise InputError(f"{place(pairs)}the key {shown(twice)} is there twice")
        return dict(pairs)

    try:
        return json.loads(data, parse_constant=_no_number, object_pairs_hook=table)
    except RecursionError:
        raise InputError(f"this is no {kind}: its brackets are nested too deep") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"this is no JSON: {error}") from None


def _no_number(text: str) -> NoReturn:
    raise InputError(f"{text} is no finite number: JSON has none")
