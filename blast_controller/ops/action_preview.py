"""Preview of an operator's action: its effects, computed from the published state before the operator confirms it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from blast_controller.core.model.errors import UnknownRequestError
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.wording import listed
from blast_controller.core.snapshot.facts import TreeFacts
from blast_controller.core.snapshot.snapshot import Snapshot


class ActionPreview(NamedTuple):
    """The effects of an action, one sentence each; or why it is impossible."""

    sentences: list[str]
    possible: bool = True


def impossible(sentence: str) -> ActionPreview:
    """Return a preview of an impossible action."""
    return ActionPreview([sentence], False)


def drain(snapshot: Snapshot, draining: bool) -> ActionPreview:
    """Admit nothing new."""
    if draining:
        return impossible("The controller is draining already.")
    states = snapshot.requests.states
    lit = states.get(PartState.ACTIVE, 0) + states.get(PartState.CONFIGURING, 0)
    return ActionPreview(
        [
            "The controller rejects new requests of all tenants until you admit them again.",
            f"Active requests continue until they end: {lit} now.",
            f"Pending requests are still served: {states.get(PartState.PENDING, 0)} now.",
        ]
    )


def admit(snapshot: Snapshot, draining: bool) -> ActionPreview:
    """Admit again."""
    if not draining:
        return impossible("The controller admits requests already.")
    return ActionPreview(["The controller admits new requests of all tenants again."])


def quarantine(snapshot: Snapshot, element: str) -> ActionPreview:
    """Take an element out of use."""
    name = ElementId(element)
    if name not in snapshot.units:
        return impossible(f"There is no element {element}: run `blast element list` for all names.")
    sentences = [f"No new light tree uses {element} until you release it."]
    holder, unusable = snapshot.standing(name)
    tree = None if holder is None else snapshot.trees.get(holder)
    if tree is not None:
        sentences += _held_by(tree)
    elif holder is not None:
        sentences.append("The running probe of it continues.")
    if unusable is not None:
        sentences.append(f"It is unusable already: {unusable}.")
    return ActionPreview(sentences)


def _held_by(tree: TreeFacts) -> Iterator[str]:
    if tree.state.value == "idle":
        yield f"The warm tree {tree.reservation}, which no request uses, is evicted."
        return
    leaves = [leaf.port.rack for leaf in tree.layout.tree.leaves] if tree.layout.tree else []
    yield (
        f"{_named(tree)} uses it (tree {tree.reservation}, from {tree.root} to {listed(leaves)}) and continues; "
        "withdraw the request to end it."
    )


def release(snapshot: Snapshot, element: str) -> ActionPreview:
    """Bring an element back."""
    name = ElementId(element)
    if name not in snapshot.units:
        return impossible(f"There is no element {element}: run `blast element list` for all names.")
    _, unusable = snapshot.standing(name)
    if unusable is None:
        return impossible(f"{element} is usable already.")
    return ActionPreview(
        [
            f"New light trees can use {element} again. It was unusable: {unusable}.",
            "A pending request may use it immediately: make sure that it works.",
        ]
    )


def withdraw(snapshot: Snapshot, tenant: str, key: str) -> ActionPreview:
    """End a request."""
    try:
        found = snapshot.request((tenant, key))
    except UnknownRequestError:
        return impossible(f"There is no request {tenant}/{key}.")
    if found.state.final:
        return impossible(f"The request {tenant}/{key} has ended already: {found.state.value}.")
    receivers = listed(list(found.current.receivers))
    sentences = [f"The request {tenant}/{key}, from {found.current.sender} to {receivers}, ends immediately."]
    lit = [tree for tree in snapshot.trees.values() if tree.request == (tenant, key)]
    if lit:
        sentences.append("Its light tree is released; the optical transport delivers no further data.")
    sentences.append(f"Its sender is notified. Withdrawing {key} cannot be undone.")
    return ActionPreview(sentences)


def _named(tree: TreeFacts) -> str:
    return f"The request {'/'.join(tree.request)}"
