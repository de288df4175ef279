"""Fuzz tests of `blast sim rerun`: it refuses or compares damaged files of results, and never fails."""

from __future__ import annotations

import copy
import io
import json
import math
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_client.cli.command import main
from blast_sim.base.wrong_input import InputError
from blast_sim.rerun.result_file import read_result
from tests.blast_sim.flow.test_flow_scenarios import SMALL

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    # Numbers in between are accepted, and would make runs long.
    st.sampled_from([-2, -1, 0, 1, 2, 3, 10**20]),
    st.sampled_from([-1.5, 0.0, 5e-324, 0.5, 1e308, math.inf, math.nan]),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([1, "x"]),
)
WORDS = {
    "flow": ("flow", "mine.toml", "--methods", "naive", "--backgrounds", "none"),
    "replay": ("replay", "sample", "--first", "2"),
}


@cache
def written(kind: str) -> str:
    """Return a result as its command prints it."""
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()) as out:
        Path("mine.toml").write_text(SMALL)
        assert main(["sim", *WORDS[kind], "--processes", "1", "--json"]) == 0
    return out.getvalue()


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Yield the places in a JSON value."""
    inside = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [place, *(found for key, one in inside for found in places(one, (*place, key)))]


@pytest.mark.parametrize("kind", WORDS)
@given(data=st.data())
def test_changed_result_is_refused_or_compared(kind: str, data: st.DataObject) -> None:
    content = copy.deepcopy(json.loads(written(kind)))
    record = content["provenance"]
    *path, last = data.draw(st.sampled_from(places(record)[1:]))
    here = record
    for key in path:
        here = here[key]
    if data.draw(st.booleans()):
        del here[last]
    else:
        here[last] = data.draw(VALUES)
    with TemporaryDirectory() as folder:
        file = Path(folder, "result.json")
        file.write_text(json.dumps(content))
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            status = main(["sim", "rerun", str(file), "--processes", "1"])
    assert status in (0, 1, 2)
    assert (err if status == 2 else out).getvalue()
    assert status != 2 or err.getvalue().count("\n") == 1


@given(data=st.binary(max_size=60))
def test_bytes_are_no_result(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "result")
        file.write_bytes(data)
        with pytest.raises(InputError):
            read_result(file)
