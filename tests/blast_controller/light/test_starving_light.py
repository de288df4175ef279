"""No request starves under a power budget: an overdue request gets suitable splitters, however much else arrives."""

from __future__ import annotations

from itertools import cycle

from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.scheduling.policy import AGING, QUANTUM
from blast_controller.core.model.events import FinishRequested, TimePassed
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Request
from blast_controller.core.model.settings import CoreSettings
from tests.support.controller.core import World, key_of, make_fabric, multicast, ready_world
from tests.support.controller.core_power import with_optics

DUE = AGING * QUANTUM
"""When the target is overdue, which is small."""

LEASE = 1.25 * QUANTUM + 0.1
"""The longest time that a transfer holds a tree, including its setup."""

STREAMS = (("r1h1", ["r2h1", "r3h1"]), ("r5h1", ["r6h1", "r9h1"]))
TARGET = multicast("target", "r10h1", ["r4h1", "r7h1", "r8h1"], size=10**6)


class Crowd:
    """Two streams of small transfers, on racks of their own: as one ends the next one waits already.

    Each takes a 1:2 where it can. The target needs both at once, for r4 works on a leaf of a lone 1:2 only, and the
    1:4, which by its number would do, is free all the time.
    """

    def __init__(self, durations: list[list[float]], warm: float) -> None:
        fabric = with_optics(make_fabric(10, [4, 2, 2]), {"r4": 5.0})
        self.world: World = ready_world(fabric, CoreSettings(keep_warm=warm))
        self._durations = [cycle(found) for found in durations]
        self._running: list[list[tuple[Request, float]]] = [[], []]
        self._number = 0
        self._lit_since: dict[str, float] = {}

    def top_up(self) -> None:
        """Let each stream have one that runs and one that waits."""
        for stream, (sender, receivers) in enumerate(STREAMS):
            while len(self._running[stream]) < 2:
                self._number += 1
                asked = multicast(f"small {self._number}", sender, receivers, size=10**6)
                request = self.world.submit(asked)
                self._running[stream].append((request, next(self._durations[stream])))
        self.world.settle()

    def step(self) -> None:
        """Advance to the next end of a transfer or timer of the core."""
        world, due = self.world, []
        for transfers in self._running:
            for request, seconds in transfers:
                if request.state is PartState.ACTIVE:
                    since = self._lit_since.setdefault(request.current.key, world.now)
                    due.append((since + seconds, request))
        timer = world.core.next_timer()
        moments = [when for when, _ in due] + ([timer] if timer is not None else [])
        world.now = max(world.now, min(moments))
        for when, request in due:
            if when <= world.now and request.state is PartState.ACTIVE:
                self._running = [[t for t in found if t[0] is not request] for found in self._running]
                self.top_up_after(request)
        world.handle(TimePassed())
        world.settle()

    def top_up_after(self, request: Request) -> None:
        """Submit the successor of a transfer, then finish the transfer."""
        self.top_up()
        self.world.handle(FinishRequested(key_of(request.current.key), 0))


times = st.lists(st.floats(0.05, 0.6), min_size=1, max_size=5)


@settings(max_examples=8, deadline=None)
@given(one=times, other=times, warm=st.sampled_from([0.0, 5.0]))
@example(one=[0.4], other=[0.3], warm=0.0)
def test_overdue_request_gets_suitable_splitters(one: list[float], other: list[float], warm: float) -> None:
    crowd = Crowd([one, other], warm)
    crowd.top_up()
    target = crowd.world.submit(TARGET)
    began = crowd.world.now
    while target.state is PartState.PENDING:
        crowd.step()
        # Two transfers of each stream are ahead of the target.
        assert crowd.world.now <= began + DUE + 5 * LEASE, "the target starves"
    crowd.world.settle()
    assert target.state is PartState.ACTIVE
    tree = crowd.world.core.view.reservation(target.parts[0].reservation or 0)
    assert tree is not None
