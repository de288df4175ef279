"""What an operator's action will do, and to whom: said before it is done, from what everybody is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from blast_controller.core.model.errors import UnknownRequest
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.wording import listed
from blast_controller.core.snapshot.facts import TreeFacts
from blast_controller.core.snapshot.snapshot import Snapshot


class Foretold(NamedTuple):
    """What will happen, a sentence each; or why there is nothing to be done."""

    sentences: list[str]
    possible: bool = True


def impossible(sentence: str) -> Foretold:
    """There is nothing to be done."""
    return Foretold([sentence], False)


def drain(snapshot: Snapshot, draining: bool) -> Foretold:
    """Admit nothing new."""
    if draining:
        return impossible("The controller is drained already.")
    states = snapshot.requests.states
    lit = states.get(PartState.ACTIVE, 0) + states.get(PartState.CONFIGURING, 0)
    return Foretold(
        [
            "New requests of all tenants are refused, until you admit them again.",
            f"Requests that have light go on to the end: {lit} now.",
            f"Requests that were admitted and wait will still be served: {states.get(PartState.PENDING, 0)} now.",
        ]
    )


def admit(snapshot: Snapshot, draining: bool) -> Foretold:
    """Admit again."""
    if not draining:
        return impossible("The controller admits requests already.")
    return Foretold(["New requests are admitted again, of all tenants."])


def quarantine(snapshot: Snapshot, element: str) -> Foretold:
    """Take an element out of use."""
    name = ElementId(element)
    if name not in snapshot.units:
        return impossible(f"There is no element {element}: `blast fabric elements` lists them all.")
    sentences = [f"{element} gets no new light until it is released."]
    holder, unusable = snapshot.standing(name)
    tree = None if holder is None else snapshot.trees.get(holder)
    if tree is not None:
        sentences += _held_by(tree)
    elif holder is not None:
        sentences.append("It is being probed just now; that goes on.")
    if unusable is not None:
        sentences.append(f"It cannot be used anyway: {unusable}.")
    return Foretold(sentences)


def _held_by(tree: TreeFacts) -> Iterator[str]:
    if tree.state.value == "idle":
        yield f"Tree {tree.reservation}, which is kept lit for its group, is given up; nobody uses it."
        return
    leaves = [leaf.port.rack for leaf in tree.layout.tree.leaves] if tree.layout.tree else []
    yield (
        f"{_named(tree)} uses it now (tree {tree.reservation}, from {tree.root} to {listed(leaves)}) and goes on: "
        "withdraw that, too, if it should end."
    )


def release(snapshot: Snapshot, element: str) -> Foretold:
    """Bring an element back."""
    name = ElementId(element)
    if name not in snapshot.units:
        return impossible(f"There is no element {element}: `blast fabric elements` lists them all.")
    _, unusable = snapshot.standing(name)
    if unusable is None:
        return impossible(f"{element} is not out of use.")
    return Foretold(
        [
            f"{element} may carry light again. It was out of use: {unusable}.",
            "Whoever waits for light may get it at once: be sure that it works.",
        ]
    )


def withdraw(snapshot: Snapshot, tenant: str, key: str) -> Foretold:
    """End a request."""
    try:
        found = snapshot.request((tenant, key))
    except UnknownRequest:
        return impossible(f"No request {tenant}/{key} is known here.")
    if found.state.final:
        return impossible(f"The request {tenant}/{key} is over already: {found.state.value}.")
    receivers = listed(list(found.current.receivers))
    sentences = [f"The request {tenant}/{key}, from {found.current.sender} to {receivers}, ends now."]
    lit = [tree for tree in snapshot.trees.values() if tree.request == (tenant, key)]
    if lit:
        sentences.append("Its light goes out: what has not been received by then is not delivered by light.")
    sentences.append(f"Its sender is told that it was withdrawn by an operator. It cannot be undone: {key} stays over.")
    return Foretold(sentences)


def _named(tree: TreeFacts) -> str:
    return f"The request {'/'.join(tree.request)}"
