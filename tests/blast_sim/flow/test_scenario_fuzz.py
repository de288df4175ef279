"""Fuzz tests of the scenarios of both simulators: each is read, or rejected with a place."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.configuration.schema import SchemaError
from blast_sim.base.scenario_file import ScenarioSource, find_in, parsed_value, refusal, shipped_in
from blast_sim.base.wrong_input import InputError
from blast_sim.fabric import scenario as fabric
from blast_sim.scenarios import loading as flow
from blast_sim.scenarios.schema import Scenario

TEXTS = {
    "flow": [flow.find(name).text for name in flow.shipped()],
    "fabric": [find_in(fabric.HERE, name).text for name in shipped_in(fabric.HERE)],
}
ODD = [
    "-1", "0", "1e400", "nan", "{}", "[]", "''", "true", "9" * 30, "0x" + "f" * 5000, "1979-05-27", "[sweep]", "sweep",
    "title",
]  # fmt: skip
PARTS = re.compile(r"([\w.\[\]\"':-]+)")
WORDS = st.sampled_from([*PARTS.findall("\n".join(TEXTS["flow"] + TEXTS["fabric"])), *ODD])
KEYS = {
    "flow": [
        "light.splitters", "light.switch", "network.racks", "network.uplink_gbps", "network.sites",
        "network.sites.gridlab.paths_mbps", "run.0.methods", "run", "jobs.0.racks", "multicasts.groups",
        "multicasts.racks_per_group", "background.racks_per_direction.none", "title", "a.b.c", ".",
    ],
    "fabric": ["flows.0.rate_gbps", "flows", "sweep", "sweep.seed", "title", "topology.leaves.x", "a.b", "."],
}  # fmt: skip

both = pytest.mark.parametrize("kind", TEXTS)


def read(kind: str, text: str, settings: dict[str, object]) -> None:
    source = ScenarioSource("mine.toml", text)
    try:
        if kind == "flow":
            assert isinstance(flow.load(source, settings), Scenario)
        else:
            json.dumps(fabric.load(source, settings).model, allow_nan=False)
        return
    except InputError as wrong:
        reported = str(wrong)
    except SchemaError as fault:
        reported = str(refusal(source, {key: f"--set {key}" for key in settings}, fault))
    assert "\n" not in reported and re.match(r"(mine\.toml:\d+|--set [^:]*): ", reported), reported


@both
@given(text=st.text(max_size=300))
def test_any_text_is_read_or_rejected_with_a_place(kind: str, text: str) -> None:
    read(kind, text, {})


@both
@given(
    data=st.data(),
    changes=st.lists(st.tuples(st.integers(0, 400), WORDS), max_size=4),
    lines=st.sets(st.integers(0, 60), max_size=5),
)
def test_mutated_shipped_scenarios_are_read_or_rejected(
    kind: str, data: st.DataObject, changes: list[tuple[int, str]], lines: set[int]
) -> None:
    text = data.draw(st.sampled_from(TEXTS[kind]))
    for place, word in changes:
        parts = PARTS.split(text)
        parts[(2 * place + 1) % len(parts)] = word
        text = "".join(parts)
    read(kind, "\n".join(line for number, line in enumerate(text.splitlines()) if number not in lines), {})


@both
@given(data=st.data())
def test_any_settings_are_read_or_rejected_with_a_key(kind: str, data: st.DataObject) -> None:
    values = st.one_of(WORDS, st.text(max_size=20))
    settings = data.draw(st.dictionaries(st.sampled_from(KEYS[kind]), values, max_size=3))
    read(kind, data.draw(st.sampled_from(TEXTS[kind])), {key: parsed_value(value) for key, value in settings.items()})
