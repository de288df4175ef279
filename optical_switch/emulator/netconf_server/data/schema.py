"""Nodes of a data model, and trees of data: dictionaries of texts, of containers and of lists by key.

A leaf of a tree is the canonical text of its value. Leaves that are absent have their defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from optical_switch.emulator.netconf_server.messages.names import OPTICAL_SWITCH

Tree = dict[str, "Tree | str"]
"""Data below a container or an entry of a list, by the local names of the nodes; below a list, by key."""

Check = Callable[[str], str]
"""Function that returns the canonical text of a value. Raises ValueError, with a sentence."""


@dataclass(frozen=True, slots=True)
class ModelLeaf:
    """A leaf.

    Parameters
    ----------
    check : Check
        Check of its values.
    default : str | None
        Its value where it is absent. None: it has none.
    exists : Callable[[Mapping[str, str]], bool] | None
        The statement `when`, given the leaves beside it. None: it may always exist.
    namespace : str
        Namespace of the module that defines it.
    """

    check: Check
    default: str | None = None
    exists: Callable[[Mapping[str, str]], bool] | None = None
    namespace: str = OPTICAL_SWITCH


@dataclass(frozen=True, slots=True)
class ModelContainer:
    """A container without meaning of its own."""

    children: Mapping[str, ModelNode]
    namespace: str = OPTICAL_SWITCH


@dataclass(frozen=True, slots=True)
class ModelList:
    """A list of entries, each with one key.

    Parameters
    ----------
    key : str
        Leaf whose value is the key: a number.
    children : Mapping[str, ModelLeaf | ModelContainer]
        Nodes of an entry, the key first.
    fixed : tuple[str, ...]
        Keys of the entries that always exist. Deleting one resets its leaves.
    namespace : str
        Namespace of the module that defines it.
    """

    key: str
    children: Mapping[str, ModelNode]
    fixed: tuple[str, ...] = ()
    namespace: str = OPTICAL_SWITCH


ModelNode = ModelLeaf | ModelContainer | ModelList


@dataclass(frozen=True, slots=True)
class Model:
    """The top level of a data model."""

    children: Mapping[str, ModelNode] = field(default_factory=dict)

    def empty(self) -> Tree:
        """Return the data of a new device: only the entries that always exist."""
        tree: Tree = {}
        add_fixed(self.children, tree)
        return tree


def add_fixed(children: Mapping[str, ModelNode], tree: Tree) -> None:
    """Add the entries of lists that always exist, where they are absent."""
    for name, node in children.items():
        if isinstance(node, ModelContainer):
            inner: Tree = {}
            add_fixed(node.children, subtree(tree, name) if name in tree else inner)
            if inner:
                tree[name] = inner
        elif isinstance(node, ModelList) and node.fixed:
            entries = subtree(tree, name)
            for key in node.fixed:
                entries.setdefault(key, {node.key: key})


def subtree(tree: Tree, name: str) -> Tree:
    """Return the data below a container, a list or a key; it is added where it is absent."""
    found = tree.setdefault(name, {})
    assert isinstance(found, dict)
    return found


def entries_of(tree: Tree, container: str, name: str) -> dict[str, dict[str, str]]:
    """Return the entries of a list in a container, by key; entries that have only leaves."""
    found: dict[str, dict[str, str]] = {}
    inner = tree.get(container, {})
    entries = inner.get(name, {}) if isinstance(inner, dict) else {}
    assert isinstance(entries, dict)
    for key, entry in entries.items():
        assert isinstance(entry, dict)
        found[key] = leaves_of(entry)
    return found


def leaves_of(tree: Tree) -> dict[str, str]:
    """Return the leaves of a container or an entry."""
    return {name: value for name, value in tree.items() if isinstance(value, str)}


def copied(tree: Tree) -> Tree:
    """Return a tree that shares nothing with `tree`."""
    return {name: value if isinstance(value, str) else copied(value) for name, value in tree.items()}


def with_defaults(children: Mapping[str, ModelNode], leaves: Mapping[str, str]) -> dict[str, str]:
    """Return the values of all leaves of a container or an entry, those of absent leaves too."""
    values = dict(leaves)
    conditional = []
    for name, node in children.items():
        if isinstance(node, ModelLeaf) and name not in values and node.default is not None:
            if node.exists is None:
                values[name] = node.default
            else:
                conditional.append((name, node.default, node.exists))
    return values | {name: default for name, default, exists in conditional if exists(values)}


# ------------------------------------------------------------------------------------------------- types of values


def whole_number(low: int, high: int) -> Check:
    """Return the check of an integer type with a range."""

    def check(text: str) -> str:
        if not re.fullmatch(r"\+?[0-9]{1,10}", text) or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return str(int(text))

    return check


def decimal_number(low: str | None = None, high: str | None = None) -> Check:
    """Return the check of `decimal64` with two fraction digits and an optional range."""

    def check(text: str) -> str:
        if not re.fullmatch(r"[+-]?[0-9]{1,16}(\.[0-9]{1,2})?", text):
            raise ValueError("must be a number with at most two fraction digits")
        value = Decimal(text)
        if (low is not None and value < Decimal(low)) or (high is not None and value > Decimal(high)):
            raise ValueError(f"must be a number from {low} to {high}")
        return decimal_text(value)

    return check


def decimal_text(value: Decimal | float) -> str:
    """Return the canonical text of `decimal64` with two fraction digits (RFC 7950 section 9.3.2)."""
    text = f"{value:.2f}".rstrip("0")
    text = f"{text}0" if text.endswith(".") else text
    return "0.0" if text == "-0.0" else text


def one_of(*names: str) -> Check:
    """Return the check of an enumeration, or of a Boolean value."""

    def check(text: str) -> str:
        if text not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return text

    return check


def printable_ascii(max_length: int) -> Check:
    """Return the check of a text of printable ASCII characters."""

    def check(text: str) -> str:
        if not re.fullmatch(rf"[ -~]{{0,{max_length}}}", text):
            raise ValueError(f"must be at most {max_length} printable ASCII characters")
        return text

    return check


def number_among(numbers: Iterable[int], check: Check, kind: str) -> Check:
    """Return the check of a port number: of the model's type, and one that the device has."""
    known = frozenset(numbers)

    def check_known(text: str) -> str:
        value = check(text)
        if int(value) not in known:
            raise ValueError(f"is no {kind} of this switch")
        return value

    return check_known
