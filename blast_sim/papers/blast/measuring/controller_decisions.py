"""The controller's own decisions for `allocation_speed.py`: its core and its policy, without devices and disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from algorithms.scheduling import POLICIES
from algorithms.scheduling.advised import AdvisedScheduler
from algorithms.scheduling.job import Job
from blast_controller.core.controller import Core
from blast_controller.core.model.events import DeviceConnected, RequestSubmitted
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.core.model.settings import CoreSettings
from blast_sim.allocation.workloads import WorkloadInstance
from blast_sim.flow.network import RackNetwork
from blast_sim.flow.optics import SWITCH, OpticalResources, host_name

POLICY = "paper"
LIGHT_RATE = 10e9
MEGABYTE = 1e6
SECONDS_PER_EVENT = 0.025
"""Time that passes between two events: 40 requests a second (section V-B)."""


def core_that_waits(instance: WorkloadInstance) -> Core:
    """Return a controller's core with all devices connected and all requests submitted, before its decision."""
    ((fan_out, splitters),) = instance.pool.items()
    network = RackNetwork(instance.racks, 1, LIGHT_RATE, LIGHT_RATE, LIGHT_RATE)
    fabric = OpticalResources(splitters, fan_out).fabric(network, range(instance.racks))
    core = Core(fabric, CoreSettings(policy=POLICY, max_pending_per_tenant=len(instance.edges)))
    core.restore((), 0.0)
    devices: list[Device] = [SWITCH, *(rack.datapath for rack in fabric.racks.values())]
    for device in devices:
        core.take(DeviceConnected(device), 0.0)
    core.conclude(0.0)
    for number, edge in enumerate(instance.edges):
        sender, *receivers = map(host_name, edge.racks)
        size = round(edge.weight * MEGABYTE / len(receivers))
        core.take(RequestSubmitted(MulticastRequest(str(number), "default", sender, tuple(receivers), size)), 0.0)
    return core


@dataclass(frozen=True)
class ServedCount:
    """The number of granted requests, by whether they need a splitter."""

    multicasts: int
    unicasts: int

    @classmethod
    def of(cls, core: Core) -> ServedCount:
        """Count the granted requests of this core."""
        trees = [one.layout.tree for one in core.reservations if one.layout.tree is not None]
        unicasts = sum(not tree.splitters for tree in trees)
        return cls(len(trees) - unicasts, unicasts)


class PolicyAtWork:
    """The controller's policy with arriving and completing groups, called as by the controller's dispatcher."""

    def __init__(self, instance: WorkloadInstance) -> None:
        self._scheduler = AdvisedScheduler(POLICIES[POLICY], {SWITCH: instance.feasibility()})
        self._waiting = zip(instance.groups(), instance.edges, strict=True)
        self._now = 0.0

    @property
    def pending(self) -> int:
        """The number of waiting groups."""
        return self._scheduler.waiting_count

    def running(self) -> list[Job]:
        """Return the granted jobs."""
        return [start.job for start in self._scheduler.running]

    def arrive(self) -> tuple[float, int]:
        """Submit one more group; return the microseconds of the decision, and the number of grants."""
        group, edge = next(self._waiting)
        seconds = 8 * MEGABYTE * edge.weight / (len(edge.racks) - 1) / LIGHT_RATE
        job = Job(group.name, group, 1 << edge.racks[0], seconds, self._now, may_pause=False)
        return self._timed(lambda: self._scheduler.arrive(job, self._now))

    def complete(self, job: Job) -> tuple[float, int]:
        """End a running job; return the microseconds of the decision, and the number of grants."""
        return self._timed(lambda: self._scheduler.complete(job.name, self._now))

    def _timed(self, event: Callable[[], object]) -> tuple[float, int]:
        self._now += SECONDS_PER_EVENT
        started = time.thread_time_ns()
        self._scheduler.gather()
        event()
        starts, _ = self._scheduler.decide(self._now)
        return (time.thread_time_ns() - started) / 1e3, len(starts)
