"""Whatever a scenario of the rack fabric says, it can be written as JSON or is refused with a place."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.configuration.schema import SchemaFault
from blast_sim.base.scenario_file import Source, find_in, parsed_value, refusal, shipped_in
from blast_sim.fabric.scenario import HERE, load

TEXTS = [find_in(HERE, name).text for name in shipped_in(HERE)]
ODD = [
    "-1",
    "1e400",
    "nan",
    "{}",
    "[]",
    "''",
    "true",
    "9" * 30,
    "0x" + "f" * 5000,
    "1979-05-27",
    "[sweep]",
    "sweep",
    "title",
]
WORDS = st.sampled_from([*re.findall(r"[\w.\[\]\"':-]+", "\n".join(TEXTS)), *ODD])
KEYS = st.sampled_from(["flows.0.rate_gbps", "flows", "sweep", "sweep.seed", "title", "topology.leaves.x", "a.b", "."])


def read(text: str, settings: dict[str, object]) -> None:
    source = Source("mine.toml", text)
    try:
        json.dumps(load(source, settings).model, allow_nan=False)
    except SchemaFault as fault:
        told = str(refusal(source, {key: f"--set {key}" for key in settings}, fault))
        assert "\n" not in told and re.match(r"(mine\.toml:\d+|--set [^:]*): ", told), told


@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    read(text, {})


@given(st.sampled_from(TEXTS), st.lists(st.tuples(st.integers(0, 200), WORDS), min_size=1, max_size=4))
def test_shipped_ones_with_words_exchanged(text: str, changes: list[tuple[int, str]]) -> None:
    for place, word in changes:
        parts = re.split(r"([\w.\[\]\"':-]+)", text)
        parts[(2 * place + 1) % len(parts)] = word
        text = "".join(parts)
    read(text, {})


@given(st.sampled_from(TEXTS), st.dictionaries(KEYS, st.one_of(WORDS, st.text(max_size=20)), max_size=3))
def test_any_settings(text: str, settings: dict[str, str]) -> None:
    read(text, {key: parsed_value(value) for key, value in settings.items()})
