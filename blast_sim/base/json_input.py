"""JSON that a user has written: what Python's reader would let pass and no format here means is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NoReturn

from blast_sim.base.wrong_input import WrongInput, first_repeated, shown

Pairs = Sequence[tuple[str, object]]


def parse_json(data: bytes, what: str, place: Callable[[Pairs], str] = lambda pairs: "") -> object:
    """The value in these bytes, which are meant to be a `what`; no key twice, no NaN and no infinity.

    `place` says where a table with these pairs is, to stand before what is wrong in it. Raises WrongInput.
    """

    def table(pairs: list[tuple[str, object]]) -> dict[str, object]:
        twice = first_repeated(key for key, _ in pairs)
        if twice is not None:
            raise WrongInput(f"{place(pairs)}the key {shown(twice)} is there twice")
        return dict(pairs)

    try:
        return json.loads(data, parse_constant=_no_number, object_pairs_hook=table)
    except RecursionError:
        raise WrongInput(f"this is no {what}: its brackets are nested too deep") from None
    except WrongInput:
        raise
    except ValueError as error:
        raise WrongInput(f"this is no JSON: {error}") from None


def _no_number(text: str) -> NoReturn:
    raise WrongInput(f"{text} is no finite number: JSON has none")
