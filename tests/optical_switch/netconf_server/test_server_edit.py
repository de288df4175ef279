"""Edits of data on the device's side (RFC 6241 section 7.2), without a connection."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.emulator.netconf_server.data.device_model import config_model
from optical_switch.emulator.netconf_server.data.edit import EditOperation, edited
from optical_switch.emulator.netconf_server.data.schema import Tree, copied, entries_of
from optical_switch.emulator.netconf_server.messages.rpc_errors import ServerRpcError
from tests.optical_switch.netconf_server.raw_client import BASE, OPSW, PLTS, cross_connects, removed

MODEL = config_model(8, 8)


def with_pairs(**pairs: int) -> Tree:
    """Return data with these pairs, named as `p1=9`."""
    return apply("".join(cross_connects((int(name[1:]), egress)) for name, egress in pairs.items()))


def apply(config: str, before: Tree | None = None, default: EditOperation = EditOperation.MERGE) -> Tree:
    """Return the data after an edit."""
    tree = MODEL.empty() if before is None else before
    return edited(MODEL, tree, ET.fromstring(f'<config xmlns:nc="{BASE}">{config}</config>'), default)


def pairs(tree: Tree) -> dict[int, int]:
    """Return the pairs in data."""
    return {int(pair["ingress"]): int(pair["egress"]) for pair in entries_of(tree, "cross-connects", "pair").values()}


def refused(config: str, before: Tree | None = None, default: EditOperation = EditOperation.MERGE) -> ServerRpcError:
    """Check that an edit is refused and changes nothing; return the error."""
    before = MODEL.empty() if before is None else before
    kept = copied(before)
    with pytest.raises(ServerRpcError) as refusal:
        apply(config, before, default)
    assert before == kept
    return refusal.value


PAIR = "/opsw:cross-connects/opsw:pair"
PATH_3 = f"{PAIR}[opsw:ingress='3']"
EMPTY = f'<cross-connects xmlns="{OPSW}"%s/>'


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (cross_connects((3, 9)), {1: 11, 2: 12, 3: 9}),
        (cross_connects((1, 9)), {1: 9, 2: 12}),
        (cross_connects((1, 9), operation="merge"), {1: 9, 2: 12}),
        (cross_connects((1, 9), operation="replace"), {1: 9, 2: 12}),
        (cross_connects((3, 9), operation="replace"), {1: 11, 2: 12, 3: 9}),
        (cross_connects((3, 9), operation="create"), {1: 11, 2: 12, 3: 9}),
        (removed(1), {2: 12}),
        (removed(1, 2), {}),
        (removed(1, operation="remove"), {2: 12}),
        (removed(3, operation="remove"), {1: 11, 2: 12}),
        (removed(1) + cross_connects((3, 11)), {2: 12, 3: 11}),
        (EMPTY % ' nc:operation="delete"', {}),
        (EMPTY % ' nc:operation="remove"', {}),
        (EMPTY % "", {1: 11, 2: 12}),
        (
            cross_connects((3, 9)).replace("<cross-connects", '<cross-connects nc:operation="replace"'),
            {3: 9},
        ),
    ],
)
def test_operations_change_pairs(config: str, expected: dict[int, int]) -> None:
    assert pairs(apply(config, with_pairs(p1=11, p2=12))) == expected


@pytest.mark.parametrize(
    ("config", "tag", "path"),
    [
        (cross_connects((1, 9), operation="create"), "data-exists", f"{PAIR}[opsw:ingress='1']"),
        (removed(3), "data-missing", PATH_3),
        (removed(1, 3), "data-missing", PATH_3),
        (cross_connects((0, 9)), "invalid-value", f"{PAIR}/opsw:ingress"),
        (cross_connects((9, 9)), "invalid-value", f"{PAIR}/opsw:ingress"),
        (cross_connects((65536, 9)), "invalid-value", f"{PAIR}/opsw:ingress"),
        (cross_connects((3, 0)), "invalid-value", f"{PATH_3}/opsw:egress"),
        (cross_connects((3, 8)), "invalid-value", f"{PATH_3}/opsw:egress"),
        (cross_connects((3, 17)), "invalid-value", f"{PATH_3}/opsw:egress"),
        (cross_connects((3, 9)).replace("9", "x"), "invalid-value", f"{PATH_3}/opsw:egress"),
        (cross_connects((3, 9)).replace("egress>", "exit>"), "unknown-element", PATH_3),
        (cross_connects((3, 9)).replace(OPSW, PLTS), "unknown-element", ""),
        (cross_connects((3, 9)).replace(OPSW, "urn:other"), "unknown-namespace", ""),
        (EMPTY.replace("/>", "><pair><egress>9</egress></pair></cross-connects>") % "", "missing-element", PAIR),
        (cross_connects((3, 9), operation="move"), "bad-attribute", PAIR),
        (cross_connects((3, 9), operation="none"), "bad-attribute", PAIR),
        (cross_connects((3, 9)).replace("<pair>", '<pair operation="delete">'), "unknown-attribute", PAIR),
        (cross_connects((3, 9)).replace("9<", "<x/><"), "unknown-element", f"{PATH_3}/opsw:egress"),
    ],
)
def test_wrong_edits_are_refused_with_path(config: str, tag: str, path: str) -> None:
    error = refused(cross_connects((4, 10)) + config, with_pairs(p1=11))
    assert (error.tag, "".join(error.paths)) == (tag, path)


def test_container_without_content_does_not_exist() -> None:
    """RFC 7950 section 7.5.1: it has no meaning of its own."""
    after = apply(removed(1), with_pairs(p1=11))
    assert after == MODEL.empty() == apply(EMPTY % "")
    for tree in (after, MODEL.empty()):
        assert refused(EMPTY % ' nc:operation="delete"', tree).tag == "data-missing"
        assert apply(EMPTY % ' nc:operation="create"', tree) == tree


def test_default_operation_replace_leaves_only_the_edit() -> None:
    labels = f'<port-config xmlns="{OPSW}"><port><port-id>2</port-id><label>leaf</label></port></port-config>'
    before = apply(labels, with_pairs(p1=11))
    after = apply(cross_connects((3, 9)), before, EditOperation.REPLACE)
    assert pairs(after) == {3: 9}
    assert entries_of(after, "port-config", "port")["2"] == {"port-id": "2"}


def test_default_operation_none_changes_only_nodes_with_operation() -> None:
    created = apply(cross_connects((3, 9), operation="create"), default=EditOperation.NONE)
    assert pairs(created) == {3: 9}
    before = with_pairs(p1=11, p2=12)
    assert pairs(apply(removed(1) + cross_connects((2, 9)), before, EditOperation.NONE)) == {2: 12}
    assert refused(cross_connects((3, 9)), before, EditOperation.NONE).tag == "data-missing"
    assert pairs(apply(cross_connects((3, 9), operation="create"), before, EditOperation.NONE)) == {1: 11, 2: 12, 3: 9}


def port(number: int, leaves: str, operation: str = "", container: str = "port-config") -> str:
    attribute = f' nc:operation="{operation}"' if operation else ""
    return f'<{container} xmlns="{OPSW}"><port{attribute}><port-id>{number}</port-id>{leaves}</port></{container}>'


def test_deleting_settings_of_port_resets_them() -> None:
    """The entry itself stays: the port does not disappear."""
    before = apply(port(2, "<label>leaf</label>"))
    assert entries_of(before, "port-config", "port")["2"] == {"port-id": "2", "label": "leaf"}
    assert apply(port(2, "", "delete"), before) == MODEL.empty()
    assert apply(port(2, '<label nc:operation="delete"/>'), before) == MODEL.empty()
    assert refused(port(3, '<label nc:operation="delete"/>'), before).tag == "data-missing"
    assert apply(port(3, '<label nc:operation="remove"/>'), before) == before
    assert refused(port(2, '<label nc:operation="create">x</label>'), before).tag == "data-exists"
    assert refused(port(17, "<label>x</label>"), before).tag == "invalid-value"
    assert refused(port(2, f"<label>{'x' * 129}</label>"), before).tag == "invalid-value"
    assert refused(port(2, "<status>DISABLED</status>"), before).tag == "unknown-element"


@pytest.mark.parametrize("text", ["1.234", "x", "1e3", "", "--1", "0.99", "5.01"])
def test_values_of_wrong_type_are_refused(text: str) -> None:
    config = f'<system-config xmlns="{OPSW}"><alarm-clear-hysteresis>{text}</alarm-clear-hysteresis></system-config>'
    assert refused(config).tag == "invalid-value"
    mode = port(1, f"<mode>{text}</mode>", container="opm-alarm-config")
    assert refused(mode).tag == "invalid-value"


def test_level_exists_only_in_modes_with_level() -> None:
    """RFC 7950 sections 7.21.5 and 8.3.2."""
    level = port(9, "<atten-mode>VOA_MODE_ABSOLUTE</atten-mode><atten-level>-3.50</atten-level>", container="voa")
    before = apply(level)
    assert entries_of(before, "voa", "port")["9"]["atten-level"] == "-3.5"
    after = apply(port(9, "<atten-mode>VOA_MODE_NONE</atten-mode>", container="voa"), before)
    assert entries_of(after, "voa", "port")["9"] == {"port-id": "9", "atten-mode": "VOA_MODE_NONE"}
    alone = refused(port(9, "<atten-level>-3.5</atten-level>", container="voa"))
    assert (alone.tag, alone.paths) == ("unknown-element", ("/opsw:voa/opsw:port[opsw:port-id='9']/opsw:atten-level",))
    assert refused(port(1, "", container="voa")).tag == "invalid-value"


def test_leaf_of_other_module_has_its_namespace() -> None:
    config = f'<system-config xmlns="{OPSW}"><startup-mode xmlns="%s">MODE_VOLATILE</startup-mode></system-config>'
    assert apply(config % PLTS)["system-config"] == {"startup-mode": "MODE_VOLATILE"}
    assert refused(config % OPSW).tag == "unknown-element"


STEP = st.tuples(
    st.sampled_from(["merge", "replace", "create", "delete", "remove"]), st.integers(1, 4), st.integers(9, 12)
)


@given(st.lists(STEP, max_size=6), st.lists(STEP, max_size=4))
def test_edits_agree_with_dictionary(earlier: list[tuple[str, int, int]], edit: list[tuple[str, int, int]]) -> None:
    """An edit does what its operations do one by one to a dictionary, or nothing if one of them is impossible."""
    before = {ingress: egress for _, ingress, egress in earlier}
    tree = apply(cross_connects(*before.items()))
    expected = dict(before)
    possible = True
    for operation, ingress, egress in edit:
        possible &= not (operation == "create" and ingress in expected)
        possible &= not (operation == "delete" and ingress not in expected)
        if operation in {"delete", "remove"}:
            expected.pop(ingress, None)
        else:
            expected[ingress] = egress
    config = "".join(cross_connects((ingress, egress), operation=operation) for operation, ingress, egress in edit)
    if possible:
        assert pairs(apply(config, tree)) == expected
    else:
        assert refused(config, tree).tag in {"data-exists", "data-missing"}
