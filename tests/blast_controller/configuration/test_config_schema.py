"""TOML text is checked against a schema: message and line of each error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_base.settings import Section
from blast_controller.configuration.schema import SchemaError, checked, line_of, read_toml


class Leaf(Section):
    color: str
    size: int = 1


class Root(Section):
    title: str = ""
    leaf: tuple[Leaf, ...] = ()
    named: dict[str, Leaf] = {}  # noqa: RUF012 - pydantic copies defaults
    one: Leaf | None = None


TEXT = """\
title = "trees"

[one]
color = "red"
"size" = 3

[[leaf]]
color = "green"

[[leaf]]
color = "blue"   # size = 9 is no key here
size = 2

[named.oak]
color = "brown"
[named."10:1"]
color = "black"
size = 7
"""


@pytest.mark.parametrize(
    ("location", "line"),
    [
        (("title",), 1),
        (("one",), 3),
        (("one", "color"), 4),
        (("one", "size"), 5),
        (("one", "missing"), 3),
        (("leaf", 0), 7),
        (("leaf", 0, "color"), 8),
        (("leaf", 0, "size"), 7),
        (("leaf", 1, "size"), 12),
        (("named", "oak", "color"), 15),
        (("named", "10:1", "size"), 18),
        (("nothing",), 1),
        ((), 1),
    ],
)
def test_line_is_that_of_the_key_or_of_its_table(location, line) -> None:
    assert line_of(TEXT, location) == line


def test_inline_keys_have_the_line_of_the_outermost_key() -> None:
    text = "title = ''\nleaf = [{ color = 'red' }, { color = 'blue' }]\nnamed = {}\n"
    assert line_of(text, ("leaf", 1, "color")) == 2


def test_rows_of_a_list_are_not_read_as_tables() -> None:
    text = "[[leaf]]\npairs = [\n  [0, 1],\n  [1, 0]\n]\nsize = 2\n[[leaf]]  # another\nsize = 3\n"
    assert [line_of(text, ("leaf", place, "size")) for place in (0, 1)] == [6, 8]


def test_dotted_keys_are_found() -> None:
    assert line_of("title = ''\none.color = 'red'\none.size = 2\n", ("one", "size")) == 3


@pytest.mark.parametrize(
    ("text", "sentence", "location"),
    [
        ("titel = 'x'", "unknown key titel; did you mean title?", ("titel",)),
        ("[one]\ncolur = 'red'", "unknown key one.colur; did you mean color?", ("one", "colur")),
        ("[[leaf]]\nsize = 2", "the key leaf[1].color is missing.", ("leaf", 0, "color")),
        ("[named.a]\ncolor = 'x'\nsise = 1", "unknown key named.a.sise; did you mean size?", ("named", "a", "sise")),
        ("[one]\ncolor = 'x'\nsize = 'big'", "one.size: input should be a valid integer", ("one", "size")),
    ],
)  # fmt: skip
def test_schema_error_has_a_sentence_and_a_location(text, sentence, location) -> None:
    with pytest.raises(SchemaError) as fault:
        checked(Root, read_toml(text))
    assert str(fault.value).startswith(sentence)
    assert fault.value.location == location


@given(st.text(max_size=300), st.lists(st.one_of(st.text(max_size=8), st.integers(0, 5)), max_size=4))
def test_line_of_any_location_is_within_the_text(text: str, location: list[str | int]) -> None:
    assert 1 <= line_of(text, tuple(location)) <= max(1, len(text.splitlines()))
