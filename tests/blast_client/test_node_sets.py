"""Sets of hosts: read as ClusterShell reads them, refused before they fill the memory, folded again for people."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_base.extras import how_to_install
from blast_client.send.node_sets import MAX_HOSTS, expanded, folded, split
from blast_client.send.receivers import parse_receivers, written

RANGES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 20)), min_size=1, max_size=4)
PARTS = st.text("ab1=.:-", min_size=1, max_size=5) | RANGES.map(lambda ranges: f"n{written_as(ranges)}")


def written_as(ranges: list[tuple[int, int]]) -> str:
    """Return the text of ranges, each as (first, number of further ones)."""
    return f"[{','.join(f'{first}-{first + more}' if more else str(first) for first, more in ranges)}]"


def names(*texts: str) -> list[str]:
    return [name for name, _, _ in parse_receivers(texts)]


@given(st.lists(PARTS, min_size=1))
def test_split_reverses_join(parts: list[str]) -> None:
    assert split(" , ".join(parts)) == parts


@given(RANGES)
def test_expanded_set_is_sorted(ranges: list[tuple[int, int]]) -> None:
    numbers = {number for first, more in ranges for number in range(first, first + more + 1)}
    assert expanded(f"node{written_as(ranges)}") == [f"node{number}" for number in sorted(numbers)]


@given(st.sets(st.integers(1, 400), min_size=2, max_size=100))
def test_folded_set_expands_to_same_hosts(numbers: set[int]) -> None:
    hosts = [f"node{number}" for number in sorted(numbers)]
    text = folded(hosts)
    if " more" not in text:
        assert [name for part in split(text) for name in names(part)] == hosts


def test_parser_combines_sets_with_other_forms() -> None:
    assert parse_receivers(["h2, node[1-2,9], b=10.0.0.2:7000", "c[1-2]:7001"]) == [
        ("h2", "h2", 9095),
        *((f"node{number}", f"node{number}", 9095) for number in (1, 2, 9)),
        ("b", "10.0.0.2", 7000),
        ("c1", "c1", 7001),
        ("c2", "c2", 7001),
    ]
    assert names("r[1-2]h[01-02]") == ["r1h01", "r1h02", "r2h01", "r2h02"]
    assert names("n[1-9/4]") == ["n1", "n5", "n9"]
    assert names("n[1-4]!n[2-3]") == ["n1", "n4"]


@pytest.mark.parametrize(
    "text", ["node[1-99999999]", "a[1-200]b[1-200]", "n[1-9999,20000-99999]", ",".join(f"h{n}" for n in range(10_001))]
)
def test_too_large_set_is_rejected_before_expansion(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ClusterShell.NodeSet", None)
    with pytest.raises(ValueError, match=f"names more than {MAX_HOSTS} hosts"):
        parse_receivers([text])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("node[1-9999999999]", "write ranges like"),
        ("node[a-b]", "write ranges like"),
        ("node[]", "write ranges like"),
        ("node[3-1]", "is no set of hosts"),
        ("node[1-2", "is no set of hosts"),
        ("node1-2]", "is no set of hosts"),
        ("@no-such-group", "names no host|is no set of hosts"),
        ("@a:b", r"cannot resolve the group \(a\): add it to groups.conf"),
        ("h\udcff", "is not HOST"),
        ("node[1-2]:99999", "is not HOST, HOST:PORT"),
        ("n1,node[1-2],node2", "node2 is named twice"),
        ("h 2", "is not HOST"),
        ("h2,", "is not HOST"),
        ("", "is not HOST"),
    ],
)
def test_parser_rejects_invalid_sets_with_reason(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_receivers([text])


def test_missing_clustershell_error_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ClusterShell.NodeSet", None)
    with pytest.raises(ValueError, match=re.escape(how_to_install("ssh"))):
        parse_receivers(["node[1-2]"])
    assert names("h2,h3=10.0.0.3") == ["h2", "h3"], "single hosts need no library"
    assert folded(f"node{number}" for number in range(64)).endswith("node7 and 56 more")


def test_folded_abbreviates_many_hosts() -> None:
    assert folded(["node1"]) == "node1"
    assert folded([*(f"node{number}" for number in range(1, 65)), "head"]) in ("node[1-64],head", "head,node[1-64]")
    apart = [f"10.{number % 7}.{number * 37 % 200}.{number}" for number in range(300)]
    assert len(folded(apart)) < 400 and folded(apart).endswith("and 292 more")


@given(st.sampled_from(["h2", "h2:7000", "h2=10.0.0.2", "h2=10.0.0.2:7000", "h2=h2:1"]))
def test_written_receiver_parses_to_same_receiver(text: str) -> None:
    (receiver,) = parse_receivers([text])
    assert parse_receivers([written(receiver)]) == [receiver]
