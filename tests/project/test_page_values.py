"""The values of the pages in docs/: each with an id equals the result of the last run; see scripts/page_values.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import page_values
from scripts.page_values import DefinitionError, Output, Value, marks, number, rewritten, texts

DEFINITIONS = page_values.outputs()
FOUND = json.loads(page_values.FOUND.read_bytes())


def marked() -> list[tuple[Path, str, str]]:
    texts = [(page, page.read_text()) for page in page_values.pages()]
    return [(page, mark.id, text[mark.start : mark.end]) for page, text in texts for mark in marks(text)]


def test_every_value_on_a_page_equals_recorded_value():
    expected = texts(DEFINITIONS, FOUND)
    wrong = [(page.name, name, text, expected.get(name)) for page, name, text in marked() if text != expected.get(name)]
    assert wrong == [], "run scripts/refresh-figures for these"


def test_every_definition_belongs_to_a_value_on_a_page():
    used = {
        output: [DEFINITIONS[output].value(name) for name in names]
        for output, names in page_values.values_on_pages().items()
    }
    for output in DEFINITIONS.values():
        assert len(set(used[output.name])) >= len(output.values), output.name


def test_recorded_values_come_from_current_commands():
    assert {name: found["command"] for name, found in FOUND.items()} == {
        output.name: output.command for output in DEFINITIONS.values()
    }


def test_recorded_values_come_from_current_measurements():
    """Simulations that count the recorded computation of decisions are run again when it is measured again."""
    stated = {output.name: output.digests() for output in DEFINITIONS.values() if output.reads}
    assert {name: FOUND[name].get("reads") for name in stated} == stated, "run scripts/refresh-figures for these"


def test_commands_with_recorded_computation_name_its_file():
    recorded = {output.name for output in DEFINITIONS.values() if "--compute recorded" in output.command}
    file = "blast_sim/controller/recorded_compute.toml"
    assert recorded <= {output.name for output in DEFINITIONS.values() if file in output.reads}


TABLE = """<!-- values balanced.sites -->
| root | tree | fpfr random |
|---|---|---|
| brno 2 | 5.0 | 1,047.9 (38.3–57.7) |
| lecce | none | 5.5 % |

"""


def found(page: str) -> list[tuple[str, str]]:
    return [(mark.id, page[mark.start : mark.end]) for mark in marks(page)]


def test_a_value_in_a_sentence_is_read_and_rewritten():
    page = "| a | 0.265<!--fig4.none--> s | **30.6**<!--set-up.equal--> |"
    assert found(page) == [("fig4.none", "0.265"), ("set-up.equal", "**30.6**")]
    assert rewritten(page, {"fig4.none": "0.3"}) == page.replace("0.265", "0.3")


def test_values_of_a_table_have_the_words_of_row_and_column_in_their_ids():
    assert found(TABLE) == [
        ("balanced.sites.brno-2.tree", "5.0"),
        ("balanced.sites.brno-2.fpfr-random.1", "1,047.9"),
        ("balanced.sites.brno-2.fpfr-random.2", "38.3"),
        ("balanced.sites.brno-2.fpfr-random.3", "57.7"),
        ("balanced.sites.lecce.fpfr-random", "5.5"),
    ]
    new = rewritten(TABLE, {"balanced.sites.brno-2.fpfr-random.2": "40", "balanced.sites.lecce.fpfr-random": "6"})
    assert new == TABLE.replace("38.3", "40").replace("5.5", "6")


def test_a_number_is_looked_up_divided_and_subtracted():
    result = {"rows": [{"method": "a", "seconds": 6.0}, {"method": "b", "seconds": 2.0}]}
    first, second = "rows[?method=='a'].seconds", "rows[?method=='b'].seconds"
    assert number(Value(first), result) == 6.0
    assert number(Value(first, over=second), result) == 3.0
    assert number(Value(first, over=second, minus=second), result) == 2.0
    with pytest.raises(DefinitionError, match="is no number"):
        number(Value("rows"), result)


def test_tables_in_a_folder_are_numbers_and_words_by_the_name_of_the_file(tmp_path):
    (tmp_path / "some.csv").write_text("# provenance\nroot,rate\nbrno,1.5\nlecce,\n")
    assert page_values.tables(tmp_path) == {"some": [{"root": "brno", "rate": 1.5}, {"root": "lecce"}]}


def test_parameters_of_a_name_are_filled_into_its_path():
    output = Output("o", "c", True, 1, {"sites.{root}.{method}": Value("r[?root=='{root}' && m=='{method}'].x")})
    assert output.value("sites.brno.semi-flat").path == "r[?root=='brno' && m=='semi-flat'].x"
    with pytest.raises(DefinitionError, match=r"does not define o\.sites\.brno"):
        output.value("sites.brno")
