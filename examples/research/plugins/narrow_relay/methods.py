"""Two methods of multicast over the packet network."""

from collections import deque
from collections.abc import Callable

from blast_sim.flow.phases import Phase, in_sequence
from blast_sim.methods.method import Multicast, World

interface = 1


def relay(world: World, multicast: Multicast) -> list[Phase]:
    """Send to one server of every other rack, then from these servers to the others of their racks.

    If all transfers are known at the start, a method is a function that returns phases. All flows of a phase transfer
    the same number of bits, and begin when the previous phase has ended.
    """
    racks = list(world.by_rack(multicast.servers).values())
    leaders = [rack[0] for rack in racks]
    between = world.network.unicast([multicast.sender] * (len(leaders) - 1), leaders[1:])
    pairs = [(rack[0], other) for rack in racks for other in rack[1:]]
    within = world.network.unicast([one for one, _ in pairs], [other for _, other in pairs])
    return in_sequence(Phase(between, multicast.bits), Phase(within, multicast.bits))


class BinaryTree:
    """Binary tree: each server sends the data to two others as soon as it has received all of it.

    A method that decides during the simulation is a class: `send` starts a multicast, and calls `done` at its end.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def send(self, multicast: Multicast, done: Callable[[], None]) -> None:
        """Start the multicast at the current time of the simulation."""
        waiting = deque(multicast.receivers)
        missing = len(waiting)

        def has_data(server: int) -> None:
            for _ in range(min(2, len(waiting))):
                send(server, waiting.popleft())

        def send(source: int, target: int) -> None:
            path = self._world.network.unicast([source], [target])
            self._world.simulation.start(path, multicast.bits, lambda _flows: received(target))

        def received(server: int) -> None:
            nonlocal missing
            missing -= 1
            has_data(server)
            if not missing:
                done()

        has_data(multicast.sender)
