"""What the optimiser beside the controller is worth, and what it costs.

decision  one contended decision: what is served by the order of rank, and with the answer of the worker process
          (question and answer through its pipes) to 50 ms; gain in the policy's objective
ping      calls to the real daemon while a worker computes all the time, and while none does, in turns

.venv/bin/python benchmarks/optimised_decisions.py --only decision
"""

from __future__ import annotations

import argparse
import json
import queue
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import machine
from control_plane import load
from control_plane_rig import Rig, Size

from algorithms.b_matching.group import shared_ports
from algorithms.scheduling import POLICIES
from algorithms.scheduling.advised import AdvisedScheduler
from algorithms.scheduling.contention import Contention
from algorithms.scheduling.job import Job
from algorithms.scheduling.selection import Start
from blast_controller.core.model.commands import Optimise
from blast_controller.core.model.events import Optimised
from blast_controller.optimiser.process import OptimiserProcess
from blast_sim.allocation.workloads import Instance, instance

BUDGET = 0.05
FAMILIES = (("S-many", 120, 100), ("P-random", 200, 60), ("FB", 200, 100), ("ADV-star", 200, 60))
POLICY_NAMES = ("paper", "srpt-lease")


class Optimiser:
    """The worker process, asked and waited for."""

    def __init__(self) -> None:
        self._answers: queue.Queue[Optimised] = queue.Queue()
        self._process = OptimiserProcess(self._answers.put, self._answers_fail)
        self._revision = 0

    def _answers_fail(self, error: BaseException) -> None:
        raise error

    def __enter__(self) -> Optimiser:
        """Start it, and wait until it answers."""
        self._process.start()
        some = gathered(instance("S-many", 0, 120, 100), "paper").contention(0.0)
        assert some is not None
        self.ask(some, BUDGET)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def ask(self, contention: Contention, seconds: float) -> Optimised:
        """The answer, however long it takes."""
        self._revision += 1
        self._process.ask(Optimise(self._revision, contention, seconds))
        return self._answers.get()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["decision", "ping"])
    parser.add_argument("--quick", action="store_true", help="two seeds and seconds of pings")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    figures: dict[str, Any] = {"machine": machine.describe()}
    if args.only != "ping":
        figures["decision"] = decisions(range(2 if args.quick else 10))
    if args.only != "decision":
        figures["ping_ms"] = pings(1, 2.0) if args.quick else pings(3, 5.0)
    print(json.dumps(figures, indent=2) if args.json else table(figures))
    return 0


def decisions(seeds: Sequence[int]) -> list[dict[str, Any]]:
    """One row a family and policy."""
    rows = []
    with Optimiser() as optimiser:
        for family, racks, groups in FAMILIES:
            for policy in POLICY_NAMES:
                print(f"{family} {racks}/{groups}, {policy}", file=sys.stderr, flush=True)
                found = [decide(optimiser, instance(family, seed, racks, groups), policy) for seed in seeds]
                rows.append(
                    {
                        "input": f"{family} {racks}/{groups}",
                        "policy": policy,
                        "seeds": len(found),
                        "gain_percent": 100 * statistics.mean(with_it / without - 1 for without, with_it, _ in found),
                        "most_percent": 100 * max(with_it / without - 1 for without, with_it, _ in found),
                        "least_percent": 100 * min(with_it / without - 1 for without, with_it, _ in found),
                        "answer_ms": 1000 * statistics.mean(seconds for _, _, seconds in found),
                    }
                )
    return rows


def decide(optimiser: Optimiser, asked: Instance, policy: str) -> tuple[float, float, float]:
    """The objective served without and with advice, and the seconds from question to answer."""
    alone, advised = gathered(asked, policy), gathered(asked, policy)
    greedy, _ = alone.decide(0.0)
    contention = advised.contention(0.0)
    if contention is None:
        return worth(alone, greedy), worth(alone, greedy), 0.0
    began = time.perf_counter()
    answer = optimiser.ask(contention, BUDGET)
    seconds = time.perf_counter() - began
    starts, _ = advised.decide(0.0, answer.chosen)
    return worth(alone, greedy), worth(advised, starts), seconds


def gathered(asked: Instance, policy: str) -> AdvisedScheduler:
    """All of the instance's requests waiting for one decision on an idle fabric."""
    scheduler = AdvisedScheduler(POLICIES[policy], {"ocs": asked.feasibility()})
    scheduler.gather()
    for number, (edge, group) in enumerate(zip(asked.edges, asked.groups(), strict=True)):
        seconds = edge.weight / (len(edge.racks) - 1)
        scheduler.arrive(Job(number, group, shared_ports(edge.racks[0], ()), seconds, 0.0, parts=1), 0.0)
    return scheduler


def worth(scheduler: AdvisedScheduler, starts: Sequence[Start]) -> float:
    """The policy's objective of what is served."""
    return sum(scheduler.policy.objective(start.job, scheduler.state) for start in starts)


def pings(turns: int, seconds: float) -> dict[str, Any]:
    """Milliseconds of a call, worker idle and busy in turns; medians of the turns' percentiles."""
    idle, busy = [], []
    with Rig(Size(8, 8)) as rig:
        for turn in range(turns):
            print(f"pings, turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
            idle.append(load(rig, "pings", seconds=seconds, pause=0.005)["ping_ms"])
            with computing():
                busy.append(load(rig, "pings", seconds=seconds, pause=0.005)["ping_ms"])
    return {"idle": medians(idle), "busy": medians(busy)}


def medians(found: Sequence[dict[str, float]]) -> dict[str, float]:
    """Each figure's median."""
    return {name: statistics.median(figures[name] for figures in found) for name in found[0]}


@contextmanager
def computing() -> Iterator[None]:
    """A worker process that is asked again as soon as it has answered."""
    contention = gathered(instance("S-many", 0, 400, 300), "paper").contention(0.0)
    assert contention is not None
    done = threading.Event()
    with Optimiser() as optimiser:
        asking = threading.Thread(target=lambda: [optimiser.ask(contention, 1.0) for _ in iter(done.is_set, True)])
        asking.start()
        try:
            yield
        finally:
            done.set()
            asking.join()


def table(figures: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [figures["machine"]]
    if "decision" in figures:
        lines.append(f"{'input':<18}{'policy':<12}{'more served %':>14}{'least':>8}{'most':>8}{'answer ms':>11}")
        lines += [
            f"{row['input']:<18}{row['policy']:<12}{row['gain_percent']:>14.2f}{row['least_percent']:>8.2f}"
            f"{row['most_percent']:>8.2f}{row['answer_ms']:>11.1f}"
            for row in figures["decision"]
        ]
    for name, found in figures.get("ping_ms", {}).items():
        lines.append(f"ping, worker {name}: " + ", ".join(f"{key} {value:.3f}" for key, value in found.items()))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
