"""The controller with a clock on its steps: CPU time, wall time and calls of each, without the steps within it.

    python benchmarks/control_plane/step_clock.py controller run --config FILE

runs the controller and answers each line on standard input with its totals as JSON.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.control_plane.child import print_json
from blast_client.cli.command import main as blast

STEPS = {
    "read-a-call": ("rpc.connections.served_connection", "ServedConnection._outcome"),
    "write-a-reply": ("rpc.connections.served_connection", "ServedConnection._settled"),
    "change-rules": ("openflow.driver", "OpenFlowDriver._process"),
    "read-openflow-messages": ("openflow.server", "TorConnection.received"),
    "handle-a-call": ("runtime.runtime", "Runtime._work_into"),
    "take-an-event": ("core.controller", "Core.take"),
    "decide": ("core.controller", "Core._decide"),
    "conclude": ("core.controller", "Core.conclude"),
    "observe": ("runtime.observing", "Observers._notify"),
    "release-results": ("runtime.runtime", "Runtime._release"),
    "encode-records": ("store.sqlite", "to_row"),
    "write-rows": ("store.sqlite", "_write"),
    "commit-and-sync": ("store.sqlite", "_transact"),
}
"""Steps by module of `blast_controller` and function."""


class StepClock:
    """Seconds of CPU and of wall time, and calls, by step; a step that calls another does not count its time."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])

    def wrapped(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose calls count as this step."""

        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            stack: list[list[float]] = self._local.__dict__.setdefault("stack", [])
            within = [0.0, 0.0]
            stack.append(within)
            cpu, wall = time.thread_time(), time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
                stack.pop()
                if stack:
                    stack[-1][0] += cpu
                    stack[-1][1] += wall
                # Each step runs on one thread.
                total = self._totals[step]
                total[0] += cpu - within[0]
                total[1] += wall - within[1]
                total[2] += 1

        return timed

    def install(self) -> None:
        """Put the clock on all steps. Raises AttributeError if one does not exist."""
        for step, (module, name) in STEPS.items():
            owner: Any = importlib.import_module(f"blast_controller.{module}")
            *path, last = name.split(".")
            for part in path:
                owner = getattr(owner, part)
            setattr(owner, last, self.wrapped(step, getattr(owner, last)))

    def totals(self) -> dict[str, dict[str, float]]:
        """Return milliseconds and calls by step."""
        return {
            step: {"cpu_ms": 1000 * cpu, "wall_ms": 1000 * wall, "calls": calls}
            for step, (cpu, wall, calls) in self._totals.items()
        }


def threads() -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the threads that Python started, each with its CPU time and its context switches (proc(5))."""
    tick = 1000 / os.sysconf("SC_CLK_TCK")
    for thread in threading.enumerate():
        folder = Path(f"/proc/self/task/{thread.native_id}")
        user, system = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
        switches = [int(line.split()[1]) for line in (folder / "status").read_text().splitlines() if "ctxt" in line]
        yield thread.name, {"user_ms": int(user) * tick, "system_ms": int(system) * tick, "switches": sum(switches)}


def main() -> int:
    """Run `blast` with the given arguments."""
    clock = StepClock()
    clock.install()

    def serve() -> None:
        for _ in sys.stdin:
            written = Path("/proc/self/io").read_text().split("write_bytes:")[1].split()[0]
            print_json({"steps": clock.totals(), "threads": dict(threads()), "bytes_written": int(written)})

    threading.Thread(target=serve, name="figures", daemon=True).start()
    return blast()


if __name__ == "__main__":
    sys.exit(main())
