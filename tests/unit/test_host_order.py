import pytest

from blast_transport.base.errors import WrongInputError
from blast_transport.base.host_order import as_given, by_name, by_racks


def test_numbers_in_names_count_as_numbers() -> None:
    assert by_name(["node10", "node2", "node1", "node02"]) == ["node1", "node02", "node2", "node10"]
    assert by_name(["rack2-h1", "rack1-h10", "rack1-h9"]) == ["rack1-h9", "rack1-h10", "rack2-h1"]
    assert by_name(["b", "a10", "a", "10"]) == ["10", "a", "a10", "b"]


def test_the_senders_rack_comes_first() -> None:
    racks = {"h1": "rack2", "h2": "rack10", "h3": "rack2", "h4": "rack1", "h10": "rack10"}
    assert by_racks("h2", ["h1", "h3", "h4", "h10"], racks) == ["h10", "h4", "h1", "h3"]


def test_who_is_in_no_known_rack_comes_last() -> None:
    assert by_racks("s", ["x2", "a", "x1"], {"a": "r"}) == ["a", "x1", "x2"]
    assert by_racks("s", ["x", "a", "b"], {"s": "r2", "a": "r1", "b": "r2"}) == ["b", "a", "x"]


def test_a_given_order_may_name_others() -> None:
    assert as_given(["a", "b"], ["c", "b", "a"]) == ["b", "a"]


def test_wrong_orders() -> None:
    with pytest.raises(WrongInputError, match="does not name b, c"):
        as_given(["c", "a", "b"], ["a"])
    with pytest.raises(WrongInputError, match="a is named twice"):
        by_name(["a", "b", "a"])
    with pytest.raises(WrongInputError, match="b is named twice"):
        as_given(["a", "b"], ["b", "a", "b"])
