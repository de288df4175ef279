"""Whatever a scenario file says, it is read or refused in one sentence with file and line."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from blast_sim.base.scenario_file import Source, parsed_value
from blast_sim.base.wrong_input import WrongInput
from blast_sim.scenarios.loading import find, load, shipped
from blast_sim.scenarios.schema import Scenario

TEXTS = [find(name).text for name in shipped()]
WORDS = st.sampled_from(
    [*re.findall(r"[\w.\[\]\"':-]+", "\n".join(TEXTS)), "-1", "0", "1e400", "nan", "{}", "[]", "''", "true", "9" * 30]
)
KEYS = st.sampled_from(
    [
        "light.splitters",
        "light.switch",
        "network.racks",
        "network.uplink_gbps",
        "network.sites",
        "network.sites.gridlab.paths_mbps",
        "run.0.methods",
        "run",
        "jobs.0.racks",
        "multicasts.groups",
        "multicasts.racks_per_group",
        "background.racks_each_way.none",
        "title",
        "a.b.c",
        ".",
    ]
)


def read(text: str, settings: dict[str, object] | None = None) -> None:
    try:
        assert isinstance(load(Source("mine.toml", text), settings), Scenario)
    except WrongInput as wrong:
        told = str(wrong)
        assert "\n" not in told and re.match(r"(mine\.toml:\d+|--set [^:]*): ", told), told


@given(st.text(max_size=400))
def test_any_text(text: str) -> None:
    read(text)


@given(st.sampled_from(TEXTS), st.lists(st.tuples(st.integers(0, 400), WORDS), min_size=1, max_size=4))
def test_shipped_ones_with_words_exchanged(text: str, changes: list[tuple[int, str]]) -> None:
    for place, word in changes:
        parts = re.split(r"([\w.\[\]\"':-]+)", text)
        parts[(2 * place + 1) % len(parts)] = word
        text = "".join(parts)
    read(text)


@given(st.sampled_from(TEXTS), st.lists(st.integers(0, 60), min_size=1, max_size=5))
def test_shipped_ones_without_some_lines(text: str, lines: list[int]) -> None:
    read("\n".join(line for number, line in enumerate(text.splitlines()) if number not in lines))


@given(st.sampled_from(TEXTS), st.dictionaries(KEYS, st.one_of(WORDS, st.text(max_size=20)), max_size=3))
def test_any_settings(text: str, settings: dict[str, str]) -> None:
    read(text, {key: parsed_value(value) for key, value in settings.items()})
