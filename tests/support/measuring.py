"""A world whose optical switches measure power, for tests of dark leaves, alarms and links."""

from __future__ import annotations

from blast_controller.core.model.commands import SetCircuits, SetForwarding
from blast_controller.core.model.events import StepConfirmed, StepDark, StepFailed, Tick
from tests.support.core import World, key_of, make_fabric

GROUP = ["r2h1", "r3h1"]


class MeasuringWorld(World):
    """Its optical switches measure power: `dead` are the inputs and outputs, as ("in" or "out", number), that fibres
    behind are broken at."""

    def __init__(self, fabric, settings=None):
        super().__init__(fabric, settings)
        self.dead = set()

    def is_dark(self, output):
        feed = next((c.input for c in self.switches["ocs1"].held if c.output == output), None)
        if feed is None or ("out", output) in self.dead or ("in", feed) in self.dead:
            return True
        splitter = next((s for s in self.fabric.splitters.values() if feed in s.outputs), None)
        return splitter is not None and self.is_dark(splitter.input)

    def _answer(self, name, command, refusals, reply):
        for position, change in enumerate(command.changes):
            dark = frozenset(o for o in getattr(change, "leaves", ()) if self.is_dark(o))
            if refusals.get(position):
                self.post(StepFailed(name, change.reservation, change.step, "denied"))
            elif dark:
                self.post(StepDark(name, change.reservation, change.step, dark))
            else:
                self.post(StepConfirmed(name, change.reservation, change.step, 0.01))


def measuring(racks, splitters, dead=(), settings=None, **more):
    world = MeasuringWorld(make_fabric(racks, splitters, **more), settings)
    world.dead = set(dead)
    world.connect_all()
    world.commands.clear()
    return world


def part_of(world, key="a"):
    return world.core.request(key_of(key)).parts[0]


def reason(world, key="a"):
    return world.core.reason(world.core.request(key_of(key)).current, part_of(world, key), world.now)


def served(world, key="a"):
    return world.receivers_of(world.fabric.hosts["r1h1"], part_of(world, key).grant.group_address)


def quarantined(world):
    return set(world.core.view.quarantined)


def leg(world, number, splitter="s1"):
    """The switch input that a splitter's leg enters at."""
    return world.fabric.splitters[splitter].outputs[number]


def leg_name(world, number, splitter="s1"):
    return f"leg:{splitter}/{leg(world, number, splitter)}"


def output_of(world, rack):
    return world.fabric.racks[rack].optical_ports[0].output


def later(world, seconds):
    world.now += seconds
    world.handle(Tick())
    world.settle()


def circuits_told(world):
    """What switches were told: (disconnected, connected)."""
    changes = [change for c in world.commands if isinstance(c, SetCircuits) for change in c.changes]
    return {c for x in changes for c in x.disconnect}, {c for x in changes for c in x.connect}


def rules_told(world):
    return [c for c in world.commands if isinstance(c, SetForwarding)]
