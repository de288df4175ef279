"""Records behave like frozen dataclasses with slots: the oracle is one with the same fields."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.frozen_record import FrozenRecord


class PointRecord(FrozenRecord):
    """Two fields, one of which has a default."""

    x: int
    y: int = 7


class OtherPointRecord(FrozenRecord):
    """The same fields."""

    x: int
    y: int = 7


class EmptyRecord(FrozenRecord):
    """No fields."""


class PositiveRecord(FrozenRecord):
    """Checks its value."""

    value: int

    def __post_init__(self) -> None:
        if self.value <= 0:
            raise ValueError("not positive")


@dataclass(frozen=True, slots=True)
class PointOracle:
    """The same fields as a dataclass."""

    x: int
    y: int = 7


@settings(max_examples=50)
@given(st.lists(st.integers(), max_size=3), st.dictionaries(st.sampled_from("xyz"), st.integers()))
def test_record_takes_values_as_a_dataclass_does(values: list[Any], named: dict[str, Any]) -> None:
    try:
        expected = PointOracle(*values, **named)
    except TypeError:
        with pytest.raises(TypeError, match="PointRecord"):
            PointRecord(*values, **named)
        return
    record = PointRecord(*values, **named)
    assert repr(record) == repr(expected).replace("PointOracle", "PointRecord")
    assert record == PointRecord(expected.x, expected.y) and hash(record) == hash(PointRecord(expected.x, expected.y))
    match record:
        case PointRecord(x, y):
            assert (x, y) == (expected.x, expected.y)


@given(st.integers(), st.integers(), st.dictionaries(st.sampled_from("xy"), st.integers()))
def test_record_has_values_by_name_and_replaces_them(x: int, y: int, changes: dict[str, Any]) -> None:
    record = PointRecord(x, y)
    assert record.as_dict() == asdict(PointOracle(x, y)) and PointRecord.optional() == {"y"}
    assert record.replace(**changes).as_dict() == asdict(replace(PointOracle(x, y), **changes))
    with pytest.raises(TypeError, match="PointRecord"):
        record.replace(z=1)


def test_records_of_different_classes_differ() -> None:
    one: object = PointRecord(1)
    assert one != OtherPointRecord(1) and one != (1, 7)
    assert EmptyRecord() == EmptyRecord() and EmptyRecord()


def test_record_is_immutable_and_has_no_other_fields() -> None:
    record = PointRecord(1)
    for name in ("x", "z"):
        with pytest.raises(AttributeError):
            setattr(record, name, 2)
    with pytest.raises(AttributeError):
        del record.x
    assert record == PointRecord(1)


def test_record_checks_its_values() -> None:
    assert PositiveRecord(1).value == 1
    with pytest.raises(ValueError, match="not positive"):
        PositiveRecord(0)
