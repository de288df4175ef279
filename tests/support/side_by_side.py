"""Which file of tests goes to which worker: integration tests mostly wait, the others mostly compute.

So they run beside each other, as many files of each kind as the machine carries: what only waits for one another takes
its turn, and no more labs than a few share the machine's one Open vSwitch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

INTEGRATION = "tests/integration/"
AT_ONCE = 2
"""Files of integration tests: a lab takes half a processor, and its tests wait for what has a time-out of its own."""


class SideBySide(LoadScopeScheduling):
    """Gives a file to whichever worker is free, so that its fixtures are made once; both kinds as long as there are."""

    # xdist's own groups (xdist_group) have no effect under pytest 9.2: pytest-xdist issue 1386.
    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        busy = sum(self._has_integration(other) for other in self.assigned_work if other is not node)
        wanted = busy < AT_ONCE
        next_of_kind = (file for file in self.workqueue if file.startswith(INTEGRATION) is wanted)
        if file := next(next_of_kind, None):
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _has_integration(self, node: WorkerController) -> bool:
        files = self.assigned_work[node].items()
        return any(file.startswith(INTEGRATION) and not all(tests.values()) for file, tests in files)
