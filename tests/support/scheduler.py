"""The choice of the next file of tests for a free worker.

A file stays on one worker, so that its fixtures are created once. Files with scarce needs run first, within the limits
of concurrency of the machine (`needs.py`). Integration tests mostly wait and the others mostly compute: half of the
workers prefer one kind and half the other, so that waiting tests leave their processor to computing ones.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

from tests.support.needs import BY_NAME, NEEDS, ROOT

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

INTEGRATION = "tests/integration/"
_RANK = {need.name: rank for rank, need in enumerate(NEEDS)}
_MARK = re.compile(r"pytest\.mark\.(\w+)")


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


@functools.cache
def needs_of(file: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return what a module declares to need, in the order of the table; the collecting process sees no markers."""
    path = root / file
    marks = set(_MARK.findall(path.read_text(encoding="utf-8"))) if path.is_file() else set()
    return tuple(need.name for need in NEEDS if need.name in marks)


def group_of(file: str) -> str:
    """Return the group under which a file's tests are reported: its scarcest need, or else its folder."""
    needs = [name for name in needs_of(file) if name not in {"cc", "compiled"}]
    return needs[-1] if needs else file.split("/")[1]


def is_free(file: str, running: Iterable[str]) -> bool:
    """Return whether a file may start beside the running ones: none of its needs is taken as often as it may be."""
    taken = Counter(need for other in running for need in needs_of(other))
    return all(taken[need] < BY_NAME[need].at_once for need in needs_of(file))


def next_file(waiting: Iterable[str], running: Sequence[str], workers: int) -> str:
    """Return which of the waiting files is to start beside the running ones; a free one if there is any."""
    is_integration_due = sum(file.startswith(INTEGRATION) for file in running) < max(1, workers // 2)
    return min(
        waiting,
        key=lambda file: (
            not is_free(file, running),
            file.startswith(INTEGRATION) is not is_integration_due,
            -max((_RANK[need] for need in needs_of(file)), default=-1),
        ),
    )


class NeedsScheduling(LoadScopeScheduling):
    """The scheduler of xdist by file, with `next_file` as the order."""

    def _split_scope(self, nodeid: str) -> str:
        return file_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = {other: self._unfinished(other) for other in self.nodes if other is not node}
        running = [file for files in others.values() for file in files]
        file = next_file(self.workqueue, running, len(self.nodes))
        self.workqueue.move_to_end(file, last=False)
        if is_free(file, running):
            super()._assign_work_unit(node)
            return
        # Only what cannot run beside the others is left: the worker that holds its needs takes it as well.
        holders = (other for other, files in others.items() if not is_free(file, files))
        super()._assign_work_unit(next(holders, node))
        self._reschedule(node)

    def _unfinished(self, node: WorkerController) -> list[str]:
        return [file for file, tests in self.assigned_work[node].items() if not all(tests.values())]
