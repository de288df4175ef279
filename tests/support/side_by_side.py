"""Which file of tests goes to which worker: integration tests mostly wait, the others mostly compute.

So they run beside each other, half of the workers at one kind and half at the other: what only waits leaves the
processors to the others, and no more than a few labs share the machine's one Open vSwitch. What judges how fast packets
or hosts are comes last, one file after the other, when nothing else runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

INTEGRATION = "tests/integration/"
ALONE = frozenset(
    f"{INTEGRATION}test_{name}.py"
    for name in (
        "failing_hosts",
        "lab_packets",
        "lab_policies",
        "measure_shaped",
        "pipeline_ends",
        "pipeline_processes",
        "priority",
    )
)
LAST = "alone"


def file_of(nodeid: str) -> str:
    """The file of a test."""
    return nodeid.partition("::")[0]


def is_alone(nodeid: str) -> bool:
    """Whether a test is for the end, when nothing else runs."""
    return file_of(nodeid) in ALONE


class SideBySide(LoadScopeScheduling):
    """Gives a file to whichever worker is free, so that its fixtures are made once; both kinds as long as there are."""

    # xdist's own groups (xdist_group) have no effect under pytest 9.2: pytest-xdist issue 1386.
    def _split_scope(self, nodeid: str) -> str:
        return LAST if is_alone(nodeid) else file_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        busy = sum(self._is_at_integration(other) for other in self.assigned_work if other is not node)
        following = next(_in_turn(self.workqueue, busy < max(1, len(self.nodes) // 2)))
        self.workqueue.move_to_end(following, last=False)
        super()._assign_work_unit(node)

    def _is_at_integration(self, node: WorkerController) -> bool:
        files = self.assigned_work[node].items()
        return any(file.startswith(INTEGRATION) and not all(tests.values()) for file, tests in files)


def _in_turn(files: Iterable[str], wants_integration: bool) -> Iterator[str]:
    """Of the wanted kind first, what is to be alone last."""
    left = [file for file in files if file != LAST]
    yield from (file for file in left if file.startswith(INTEGRATION) is wants_integration)
    yield from left
    yield LAST
