from __future__ import annotations

from blast_controller.core.light.layout import Step
from blast_controller.core.model.commands import Forward, SetCircuits, SetForwarding
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.rollout.outbox import Outbox

CIRCUIT = CrossConnect("ocs1", 1, 2)
OTHER = CrossConnect("ocs1", 3, 4)
FORWARD = Forward(1, "10.0.0.1", "239.77.0.1", (9,))


def test_everything_on_one_device_is_one_command():
    outbox = Outbox()
    outbox.step(1, 1, Step((), (CIRCUIT,), {}, {7: (FORWARD,)}))
    outbox.step(2, 1, Step((OTHER,), (), {7: (FORWARD,)}, {}))
    circuits, forwarding = outbox.drain()
    assert isinstance(circuits, SetCircuits) and [c.reservation for c in circuits.changes] == [1, 2]
    assert isinstance(forwarding, SetForwarding) and [c.reservation for c in forwarding.changes] == [1, 2]
    assert outbox.drain() == []


def test_a_reservation_that_connects_and_is_given_up_in_one_batch_is_told_so_in_that_order():
    outbox = Outbox()
    outbox.step(1, 1, Step((), (CIRCUIT,), {}, {7: (FORWARD,)}))
    outbox.step(2, 1, Step((), (OTHER,), {}, {}))
    outbox.step(1, 2, Step((CIRCUIT,), (), {7: (FORWARD,)}, {}))
    commands = outbox.drain()
    circuits = [c for c in commands if isinstance(c, SetCircuits)]
    assert [[(c.reservation, c.step) for c in command.changes] for command in circuits] == [[(1, 1), (2, 1)], [(1, 2)]]
    forwarding = [c for c in commands if isinstance(c, SetForwarding)]
    assert [[(c.reservation, c.step) for c in command.changes] for command in forwarding] == [[(1, 1)], [(1, 2)]]
