"""Which file of tests goes to which worker: integration tests mostly wait, the others mostly compute.

So they run beside each other: what only waits leaves the processors to the others, and no more than a few labs share
the machine's one Open vSwitch. What judges how fast packets or hosts are comes when all other integration tests are
over, one file after the other; beside it are only tests that compute, and these give way.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
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
MOST_LABS = 4
"""Workers at integration tests at a time."""
GIVES_WAY = 10
"""How nice a process is (nice(2)) that computes: beside what waits it gets a tenth of a processor that both want."""
_OWN = os.getpriority(os.PRIO_PROCESS, 0)


def file_of(nodeid: str) -> str:
    """The file of a test."""
    return nodeid.partition("::")[0]


def is_alone(nodeid: str) -> bool:
    """Whether a test is for the end, when nothing else runs."""
    return file_of(nodeid) in ALONE


def give_way(nodeid: str) -> None:
    """Before a test: what computes leaves the processors to integration tests. Only root can take that back."""
    if os.geteuid() == 0:
        nice = _OWN if nodeid.startswith(INTEGRATION) else max(_OWN, GIVES_WAY)
        # Not every container lets root.
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, nice)


def following(files: Collection[str], at_integration: int, workers: int) -> str:
    """What a worker does next of what is left, while so many others are at integration tests."""
    waiting = [file for file in files if file.startswith(INTEGRATION)]
    computing = [file for file in files if not file.startswith(INTEGRATION) and file != LAST]
    if LAST in files and not waiting and not at_integration:
        return LAST
    # Those that wait for long come first, so that there is something to compute beside what comes last.
    has_room = at_integration < max(1, min(workers - 1, MOST_LABS))
    return next(iter([*waiting, *computing] if has_room else [*computing, *waiting]), LAST)


class SideBySide(LoadScopeScheduling):
    """Gives a file to whichever worker is free, so that its fixtures are made once; both kinds as long as there are."""

    # xdist's own groups (xdist_group) have no effect under pytest 9.2: pytest-xdist issue 1386.
    def _split_scope(self, nodeid: str) -> str:
        return LAST if is_alone(nodeid) else file_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        busy = sum(self._is_at_integration(other) for other in self.assigned_work if other is not node)
        self.workqueue.move_to_end(following(self.workqueue, busy, len(self.nodes)), last=False)
        super()._assign_work_unit(node)

    def _is_at_integration(self, node: WorkerController) -> bool:
        files = self.assigned_work[node].items()
        return any(file.startswith(INTEGRATION) and not all(tests.values()) for file, tests in files)
