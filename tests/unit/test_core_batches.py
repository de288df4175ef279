"""Events that come together are decided on together."""

from __future__ import annotations

import pytest

from blast_controller.core.model.commands import Publish, SetCircuits, SetForwarding
from blast_controller.core.model.errors import Rejected
from blast_controller.core.model.events import FinishAsked, RequestSubmitted, StepConfirmed, WithdrawAsked
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import key_of, make_fabric, multicast, ready_world


def test_one_decision_is_one_command_to_the_optical_switch():
    world = ready_world(make_fabric(racks=6, splitters=(4, 4)))
    core = world.core
    core.take(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])), world.now)
    core.take(RequestSubmitted(multicast("b", "r4h1", ["r5h1", "r6h1"])), world.now)
    assert core.pending_count == 2, "nothing is decided before the conclusion"
    (circuits,) = [c for c in core.conclude(world.now) if isinstance(c, SetCircuits)]
    assert [c.reservation for c in circuits.changes] == [1, 2]
    assert core.conclude(world.now) == [], "once"


def test_what_two_releases_free_is_given_out_in_one_decision():
    """The wider group needs what both give back; decided on one by one, the narrow one would have gone first."""
    world = ready_world(make_fabric(racks=6, splitters=(4, 4)), CoreSettings(policy="paper"))
    for key, sender, receivers in (("a", "r1h1", ["r2h1", "r3h1"]), ("b", "r4h1", ["r5h1", "r6h1"])):
        world.granted(multicast(key, sender, receivers))
    world.submit(multicast("narrow", "r1h1", ["r2h1", "r3h1"], size=1))
    world.submit(multicast("wide", "r1h1", ["r2h1", "r4h1", "r5h1"], size=10**9))
    core = world.core
    asked = [c for key in "ab" for c in core.handle(FinishAsked(key_of(key), 0), world.now)]
    answers = []
    for command in asked:
        if isinstance(command, SetCircuits | SetForwarding):
            device = command.switch if isinstance(command, SetCircuits) else command.datapath
            answers += [StepConfirmed(device, c.reservation, c.step, 0.0) for c in command.changes]
    for answer in answers:
        core.take(answer, world.now)
    core.conclude(world.now)
    states = {key: core.request(key_of(key)).parts[0].state for key in ("narrow", "wide")}
    assert states == {"wide": PartState.CONFIGURING, "narrow": PartState.PENDING}


def test_an_event_that_is_refused_leaves_the_others_of_its_batch():
    world = ready_world(make_fabric(racks=3, splitters=(4,)))
    core = world.core
    core.take(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])), world.now)
    with pytest.raises(Rejected):
        core.take(RequestSubmitted(multicast("b", "r1h1", [])), world.now)
    commands = core.conclude(world.now)
    assert [len(c.changes) for c in commands if isinstance(c, SetCircuits)] == [1]
    assert not any(isinstance(c, Publish) for c in commands)


@pytest.mark.parametrize("key", ["b", "d"])
def test_what_ends_and_is_forgotten_together_is_not_waited_for(key):
    world = ready_world(make_fabric(3, [4]), CoreSettings(most_ended=1))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    for waiting in "bc":
        world.handle(RequestSubmitted(multicast(waiting, "r1h1", ["r2h1", "r3h1"])))
    for waiting in "bc":
        world.core.take(WithdrawAsked(key_of(waiting)), world.now)
    # The key of one that is forgotten may be used again at once.
    world.core.take(RequestSubmitted(multicast(key, "r1h1", ["r2h1", "r3h1"], size=10)), world.now)
    world.core.conclude(world.now)
    assert key_of("b") not in world.core.requests or key == "b"
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    assert world.core.request(key_of(key)).state is PartState.ACTIVE
