"""Scene (d): more groups than splitters, served in the paper's order as resources become free."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from blast_api.ttypes import EventKind, Grant, MulticastRequest
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.results import MeasuredTransfer
from mininet_topos.demo.stage import GRANT_SECONDS, Stage
from mininet_topos.demo.transfers import RepeatedTransfer, check_optical
from mininet_topos.kernel.errors import DemoError

SPLITTERS = 2


@dataclass(frozen=True)
class ContentionRequest:
    """A request of the scene: racks by number, the sender's first; `size` in bytes. Each takes one 1:4 splitter."""

    name: str
    racks: tuple[int, ...]
    size: int

    @property
    def score(self) -> float:
        """The paper's volume per rack: data times receivers, divided by racks."""
        return self.size * (len(self.racks) - 1) / len(self.racks)


GROUPS = (
    ContentionRequest("A", (1, 2, 3), 8_000_000),
    ContentionRequest("B", (4, 5, 6), 7_500_000),
    ContentionRequest("C", (1, 2, 3), 4_000_000),
    ContentionRequest("D", (2, 4, 6), 7_000_000),
    ContentionRequest("E", (1, 3, 5), 6_000_000),
    ContentionRequest("F", (4, 5, 6), 5_000_000),
)


def picked(pending: Iterable[ContentionRequest], active: Iterable[ContentionRequest]) -> list[ContentionRequest]:
    """Return the groups that the paper's rule picks.

    The group with the highest score comes first, while all its racks are free and splitters are left.
    """
    busy = {rack for group in active for rack in group.racks}
    left = SPLITTERS - len(list(active))
    found = []
    for group in sorted(pending, key=lambda g: g.score, reverse=True):
        if left > 0 and not busy.intersection(group.racks):
            busy.update(group.racks)
            left -= 1
            found.append(group)
    return found


class _Scene:
    def __init__(self, stage: Stage, receivers: Receivers) -> None:
        self._stage = stage
        self._receivers = receivers
        self._hosts = stage.first_hosts()
        self._requests = {group: self._request(group) for group in GROUPS}
        self._pending: list[ContentionRequest] = []
        self._active: list[tuple[ContentionRequest, Grant]] = []
        self.order: list[str] = []
        self.as_expected = True
        self.transfers: list[MeasuredTransfer] = []

    def _members(self, group: ContentionRequest) -> list[str]:
        return [self._hosts[rack - 1] for rack in group.racks]

    def _request(self, group: ContentionRequest) -> MulticastRequest:
        sender, *others = self._members(group)
        return self._stage.new_request(sender, others, group.size, f"group-{group.name}")

    def submit(self) -> None:
        for group in GROUPS:
            self._stage.client.submit(self._requests[group])
            self._pending.append(group)
            self._take_grants()

    def run(self) -> None:
        while self._active:
            self._serve(*self._active[0])

    def _take_grants(self) -> None:
        """Wait for the grants that the rule predicts, and check that there are no others."""
        expected = picked(self._pending, [group for group, _ in self._active])
        for group in expected:
            grant = self._grant_of(group)
            self._pending.remove(group)
            self._active.append((group, grant))
            self.order.append(group.name)
        self.as_expected &= all(
            not self._stage.client.status(self._requests[g].key).parts[0].grant for g in self._pending
        )

    def _grant_of(self, group: ContentionRequest) -> Grant:
        event = self._stage.client.await_event(self._requests[group].key, 0, GRANT_SECONDS)
        self.as_expected &= event.kind == EventKind.GRANTED
        if event.grant is None:
            raise DemoError(f"{group.name} should be granted next, but is not: {event.reason}")
        return event.grant

    def _serve(self, group: ContentionRequest, grant: Grant) -> None:
        path = _file(self._stage.lab.directory, group)
        sender, *others = self._members(group)
        with RepeatedTransfer(self._stage, self._receivers, sender, others, path) as job:
            self.transfers.append(job.under_grant(f"group-{group.name}", grant))
        waiting = ", ".join(g.name for g in self._pending) or "none"
        self._stage.client.finish(self._requests[group].key, grant.part)
        self._active.remove((group, grant))
        before = len(self.order)
        self._take_grants()
        served = ", ".join(self.order[before:]) or "none"
        self._stage.explain(f"{group.name} finished; pending: {waiting}; granted next: {served}")


def play(stage: Stage, receivers: Receivers) -> None:
    """Run six groups on two splitters; each transfers real data."""
    stage.open_scene("d", f"Contention: {len(GROUPS)} groups of 3 racks, {SPLITTERS} splitters")
    for group in GROUPS:
        stage.explain(f"{group.name}: racks {group.racks}, volume / racks = {group.score / 1e6:.2f} MB")
    scene = _Scene(stage, receivers)
    scene.submit()
    scene.run()
    stage.check("grants follow the paper's order exactly", scene.as_expected, " ".join(scene.order))
    check_optical(stage, scene.transfers)


def _file(directory: Path, group: ContentionRequest) -> Path:
    path = directory / f"group-{group.name}.data"
    path.write_bytes((group.name.encode() * 61 + b"\n") * (group.size // 62 + 1))
    with path.open("r+b") as file:
        file.truncate(group.size)
    return path
