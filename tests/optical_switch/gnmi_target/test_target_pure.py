"""Properties of the parts without input and output."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.emulator.crossbar import ends
from optical_switch.emulator.gnmi_target.assignment import assign
from optical_switch.emulator.gnmi_target.backlog import Backlog
from optical_switch.emulator.gnmi_target.paths import Notation, node_path, select
from optical_switch.emulator.gnmi_target.ports import PortLayout, cross_connect_row
from optical_switch.emulator.gnmi_target.requested_path import requested_path
from optical_switch.emulator.gnmi_target.tables import TABLES, Fields, RowChange, RowId, parse_row_id
from optical_switch.model import Circuit
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi
from tests.optical_switch.gnmi_target.raw_client import CONFIG, YANG, path, text_of, value_of

LAYOUT = PortLayout(4, 4)
circuits = st.builds(Circuit, st.integers(1, 4), st.integers(1, 4))
# No text of a key may contain the separator.
texts = st.text(st.characters(codec="utf-8", exclude_characters="|*"), min_size=1, max_size=5)


@st.composite
def row_ids(draw: st.DrawFn) -> RowId:
    table = draw(st.sampled_from(sorted(TABLES)))
    return RowId(table, tuple(draw(texts) for _ in TABLES[table].keys))


@given(row_ids(), st.data())
def test_path_of_a_node_selects_that_node_only(row: RowId, data: st.DataObject) -> None:
    table = TABLES[row.table]
    leaf = data.draw(st.sampled_from(["", *(leaf.name for leaf in table.leaves)]))
    for notation, prefix in ((Notation.DATABASE, gnmi.Path(target=table.database)), (Notation.YANG, YANG)):
        selection = select(prefix, node_path(notation, row, leaf))
        assert not selection.is_wildcard
        [pattern] = selection.patterns
        assert pattern.matches(row)
        assert (pattern.key, pattern.leaf or "") == (row.key, leaf)
    assert parse_row_id(str(row)) == row


@given(st.lists(circuits), st.sets(circuits))
def test_assignment_uses_each_port_once_and_accounts_for_each_row(rows: list[Circuit], assigned: set[Circuit]) -> None:
    found = assign(dict(map(cross_connect_row, rows)), LAYOUT, assigned)
    used = [port for circuit in found.circuits for port in ends(circuit)]
    assert len(set(used)) == len(used)
    names = {cross_connect_row(circuit)[0].key[0] for circuit in rows}
    assert {*found.circuits.values(), *found.invalid} == names
    assert not found.invalid & set(found.circuits.values())
    # A row is invalid only if one of its ports is in another circuit.
    for circuit in rows:
        assert circuit in found.circuits or not set(used).isdisjoint(ends(circuit))


@given(st.sets(circuits, max_size=4))
def test_assigned_circuits_stay_whatever_is_added(rows: set[Circuit]) -> None:
    before = assign(dict(map(cross_connect_row, rows)), LAYOUT, ())
    everything = dict(map(cross_connect_row, LAYOUT.circuits))
    after = assign(everything, LAYOUT, before.circuits)
    assert before.circuits.items() <= after.circuits.items()


ports = st.sampled_from([RowId("OCS_PORT", (name,)) for name in ("1A", "2A", "1B")])
contents = st.one_of(
    st.none(), st.dictionaries(st.sampled_from(["label", "config_status"]), st.sampled_from(["x", "y", "z"]))
)
batches = st.lists(st.lists(st.tuples(ports, contents), max_size=4), max_size=6)


def apply_to(leaves: dict[str, str], notification: gnmi.Notification) -> dict[str, str]:
    """Return what a subscriber makes of a notification: deletes first, then updates."""
    for where in map(text_of, notification.delete):
        leaves = {name: value for name, value in leaves.items() if name != where and not name.startswith(f"{where}/")}
    return leaves | {text_of(one.path): value_of(one.val) for one in notification.update}


@pytest.mark.parametrize(
    "where",
    [path("OCS_PORT"), path("OCS_PORT", "*"), path("OCS_PORT", "1A"), path("OCS_PORT", "*", "label"), gnmi.Path()],
    ids=text_of,
)
@given(batches=batches, sent_at=st.sets(st.integers(0, 5)))
def test_subscriber_ends_with_the_state_whenever_it_is_sent_changes(
    where: gnmi.Path, batches: list[list[tuple[RowId, Fields | None]]], sent_at: set[int]
) -> None:
    requested = requested_path(CONFIG, where, gnmi.JSON_IETF)
    backlog = Backlog([requested])
    rows: dict[RowId, Fields] = {}
    leaves: dict[str, str] = {}
    for number, batch in enumerate(batches):
        for row, fields in batch:
            backlog.add_changes([RowChange(row, rows.get(row), fields)])
            rows = {one: old for one, old in rows.items() if one != row} | ({} if fields is None else {row: fields})
        if number in sent_at:
            for notification in backlog.take(gnmi.Path(), 1):
                leaves = apply_to(leaves, notification)
    for notification in backlog.take(gnmi.Path(), 1):
        leaves = apply_to(leaves, notification)
    assert leaves == expected(requested_path(CONFIG, where, gnmi.JSON_IETF), rows)


def expected(requested: object, rows: Mapping[RowId, Fields]) -> dict[str, str]:
    """Return the leaves that are selected, in the simplest way."""
    selected = (
        {"OCS_PORT/1A"} if text_of(requested.path) == "OCS_PORT/1A" else {f"OCS_PORT/{row.key[0]}" for row in rows}
    )
    only_label = text_of(requested.path).endswith("/label")
    return {
        f"OCS_PORT/{row.key[0]}/{field}": value
        for row, fields in rows.items()
        for field, value in fields.items()
        if f"OCS_PORT/{row.key[0]}" in selected and (field == "label" or not only_label)
    }


def test_values_that_are_not_sent_are_counted() -> None:
    """Section 2.1: `duplicates`."""
    backlog = Backlog([requested_path(CONFIG, path("OCS_PORT"), gnmi.JSON_IETF)])
    row = RowId("OCS_PORT", ("1A",))
    before: Fields | None = None
    for label in ("a", "b", "c"):
        backlog.add_changes([RowChange(row, before, {"label": label})])
        before = {"label": label}
    [notification] = backlog.take(gnmi.Path(), 1)
    [update] = notification.update
    assert (value_of(update.val), update.duplicates) == ("c", 2)
    assert list(backlog.take(gnmi.Path(), 1)) == []


def test_notifications_are_of_limited_size() -> None:
    backlog = Backlog([requested_path(CONFIG, path("OCS_PORT"), gnmi.JSON_IETF)])
    rows = {RowId("OCS_PORT", (f"{number}A",)): {"label": "x"} for number in range(1, 2502)}
    backlog.add_all(rows)
    assert [len(one.update) for one in backlog.take(gnmi.Path(), 1)] == [1000, 1000, 501]
