"""The rows of a comparison, and for each era of commits the commands that measure them.

An era is a range of commits whose scripts have the same names, options and output. A commit belongs to the first era of
`ERAS` whose marker it has. To add an era, write one table like those below and put it first in `ERAS`; commands that
have not changed are shared by name. The tables of older eras stay as they are, so that their commits stay runnable.

In a command, `{python}` is the interpreter of the commit's environment, `{blast}` its `blast`, and `{probes}` the
folder `probes` next to this file, whose programs measure rows that the commit's own scripts do not. A command runs in
the root of the commit's worktree and prints one JSON document.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


class ReadingError(Exception):
    """The output of a command lacks a reading. The message is one sentence."""


@dataclass(frozen=True)
class Output:
    """The JSON document that a command printed, and the CPU seconds (user and system) of its processes."""

    document: Any
    cpu_seconds: float


Reading = Callable[[Output], float]


@dataclass(frozen=True)
class Row:
    """A quantity to compare; `pairs` is its default number of pairs of runs."""

    name: str
    title: str
    unit: str
    higher_is_better: bool = False
    pairs: int = 5


@dataclass(frozen=True, eq=False)
class Command:
    """A command and the rows that it measures.

    `needs` is a path that the worktree must have, in addition to its scripts in `argv`. A run that takes longer than
    `limit_seconds` is ended.
    """

    argv: tuple[str, ...]
    readings: Mapping[str, Reading]
    needs: str = ""
    needs_root: bool = False
    limit_seconds: float = 300.0

    @property
    def paths(self) -> list[str]:
        """Return the paths that the worktree must have."""
        scripts = [word for word in self.argv if word.startswith("benchmarks/")]
        return [*scripts, self.needs] if self.needs else scripts


@dataclass(frozen=True)
class Era:
    """Commits that the same commands measure.

    `marker` is a path that exists in these commits and not in older ones. `setup` has the commands that create the
    environment and fill the caches that the first run would fill otherwise. `absent` maps a row without a command to
    the reason.
    """

    name: str
    marker: str
    setup: tuple[tuple[str, ...], ...]
    commands: tuple[Command, ...]
    absent: Mapping[str, str] = field(default_factory=dict)

    def command_of(self, row: str) -> Command | None:
        """Return the command that measures a row."""
        return next((command for command in self.commands if row in command.readings), None)


def at(*path: str | Mapping[str, object]) -> Reading:
    """Return the reading at a path of a JSON document: keys, and properties of the element to take from a list."""

    def read(output: Output) -> float:
        value = output.document
        for step in path:
            value = _step(value, step)
        return _positive(value, path)

    return read


def median(output: Output) -> float:
    """Return the median of a list of numbers."""
    try:
        return _positive(statistics.median(output.document), "its median")
    except (TypeError, statistics.StatisticsError):
        raise ReadingError("the output is not a list of numbers") from None


def cpu_seconds(output: Output) -> float:
    """Return the CPU seconds of the command."""
    return _positive(output.cpu_seconds, "CPU seconds")


def _step(value: Any, step: str | Mapping[str, object]) -> Any:
    try:
        if isinstance(step, str):
            return value[step]
        return next(each for each in value if all(each[key] == expected for key, expected in step.items()))
    except (KeyError, TypeError, StopIteration):
        # The rest of the row may contain the reason.
        raise ReadingError(f"the output has no {step!r} in {str(value)[:400]}") from None


def _positive(value: Any, path: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ReadingError(f"the output has {value!r} at {path}, not a number above 0")
    return float(value)


TRANSPORTS = ("optical", "pipeline", "unicast", "trees")
RECEIVERS = {1: "--megabytes 400 --repeats 1", 7: "--megabytes 150 --repeats 1"}
"""Numbers of receivers, and the options for the size of their file."""

ROWS = {
    row.name: row
    for row in (
        Row("cycles", "grant cycles (request, grant, finish)", "1/s", higher_is_better=True),
        Row("cycle-cpu", "CPU time of the controller per cycle", "ms"),
        Row("cycle-commands", "commands to the optical switch per cycle, warm_reserve = 0", "commands"),
        Row("cycles-switch", "grant cycles with the paper's switch (14.172 ms)", "1/s", higher_is_better=True),
        Row("grant", "software time of a grant, median", "ms"),
        Row("allocation", "one-shot allocation, 1,000 requests on 1,000 racks (CPU)", "ms", pairs=8),
        Row("event", "one event with 10,000 requests pending (CPU)", "ms"),
        Row("pass-1000", "scheduling pass, 300 requests on 1,000 racks (CPU)", "ms"),
        Row("pass-10000", "scheduling pass, 3,000 requests on 10,000 racks (CPU)", "ms"),
        *(
            Row(f"{transport}-{count}", f"{transport} transport, receivers: {count}", "Gbit/s", higher_is_better=True)
            for transport in TRANSPORTS
            for count in RECEIVERS
        ),
        Row("flow", "flow simulator, Figure 4 (CPU)", "s"),
        Row("rack-fabric", "rack-fabric simulator, 20 ms of one leaf (CPU)", "s", pairs=8),
        Row("start-up", "start-up of blast --version", "ms"),
    )
}


def cycles(script: str = "benchmarks/control_plane.py") -> tuple[Command, Command]:
    """Return the commands for grant cycles, at once and with the paper's switch."""
    options = ("--seconds", "4", "--json")
    return (
        Command(
            ("{python}", script, "--only", "cycles", *options),
            {
                "cycles": at("rows", "cycles", "cycles_per_second"),
                "cycle-cpu": at("rows", "cycles", "controller_cpu_ms_per_cycle"),
            },
        ),
        Command(
            ("{python}", script, "--only", "switch", *options),
            {"cycles-switch": at("rows", "switch", "cycles_per_second")},
        ),
    )


FLOW = Command(
    ("{blast}", "sim", "flow", "fig4", "--backgrounds", "none,light", "--compute", "0", "--processes", "1", "--json"),
    {"flow": cpu_seconds},
)
RACK_FABRIC = Command(
    ("{blast}", "sim", "fabric", "one-leaf", "--set", "duration_ns=20000000", "--json"),
    {"rack-fabric": cpu_seconds},
    needs=".venv/bin/rack-fabric",
)
ENGINE = ".venv/lib/python3.11/site-packages/blast_*_native"
"""The compiled engine. A setup without Rust lacks it, and rows would then compare the Python engine unnoticed."""
SET_UP_FLOW = ("{blast}", "sim", "flow", "fig4", "--methods", "blast", "--backgrounds", "none", "--json")
SET_UP_BYTECODE = ("{python}", "-m", "compileall", "-q", "-x", r"\.venv", ".")


def functions(*lines: str) -> tuple[str, ...]:
    """Return a command that calls one function of the commit's scripts, which as a whole measure more."""
    return ("{python}", "-c", "\n".join(("import json, sys", "sys.path.insert(0, 'benchmarks')", *lines)))


def grant(module: str = "control_plane", script: str = "benchmarks/control_plane.py") -> Command:
    """Return the command for the software time of a grant; `module` is the script as Python imports it."""
    lines = (
        f"from {module} import MEMORY, Rig, Size, load",
        "with Rig(Size(8, 8, keep_warm_ms=0), MEMORY) as rig:",
        "    print(json.dumps(load(rig, 'one', racks=8, jobs=1, requests=200)))",
    )
    return Command(functions(*lines), {"grant": at("grant_ms", "p50")}, script)


def cycle_commands(
    *options: str, module: str = "control_plane", script: str = "benchmarks/control_plane.py"
) -> Command:
    """Return the command for commands to the switch; `options` complete the call of `Size`."""
    lines = (
        f"from {module} import Rig, Size, load",
        f"with Rig(Size(100, 50{', '.join(('', *options))})) as rig:",
        "    cycles = load(rig, 'cycles', racks=100, racks_per_job=5, jobs=20, seconds=4)['cycles']",
        "    print(json.dumps({'commands': rig.switch.ask()['commands'] / cycles}))",
    )
    return Command(functions(*lines), {"cycle-commands": at("commands")}, script)


def scheduling_pass(
    racks: int, measuring: str = "blast_sim.measuring", garbage: str = "blast_controller.garbage"
) -> Command:
    """Return the command for one scheduling pass over three requests for ten racks, all on one optical switch."""
    settings = {
        "network.racks": racks,
        "network.servers_per_rack": 4,
        "multicasts.groups": racks * 3 // 10,
        "light.splitters": racks // 3,
        "light.switch_ports": 10 * racks,
    }
    lines = (
        f"from {measuring}.decisions import Effort, cells_of, find, load, run_cell",
        f"from {garbage} import GarbageCollection",
        "GarbageCollection().start()",
        f"cells = cells_of(load(find('fig4'), {settings!r}), (0,), Effort('measured'))",
        "cell = next(cell for cell in cells if cell.method == 'blast' and cell.background == 'none')",
        "print(json.dumps({'milliseconds': 1000 * min(run_cell(cell)[0]['compute_seconds'] for _ in range(2))}))",
    )
    script = f"{measuring.replace('.', '/')}/decisions.py"
    return Command(functions(*lines), {f"pass-{racks}": at("milliseconds")}, script)


def allocation(module: str, script: str = "benchmarks/allocation_speed.py") -> Command:
    """Return the command for one-shot allocation, a function of `module`."""
    lines = f"from {module} import one_shot", "print(json.dumps(one_shot('P-contig', 1000, 1000, 40)))"
    return Command(functions(*lines), {"allocation": median}, script)


def event(*options: str, needs: str = "tests/support/core.py") -> Command:
    """Return the command for one event with many pending requests."""
    argv = ("{python}", "{probes}/pending_event.py", *options)
    return Command(argv, {"event": at("milliseconds")}, needs)


def transports(tools: Mapping[str, str], script: str = "benchmarks/transport.py", needs: str = "") -> list[Command]:
    """Return the commands for transports; `tools` maps each to its name in the script."""
    return [
        Command(
            ("{python}", script, "--tools", tool, "--cells", f"unshaped:{count}", *size.split(), "--json"),
            {f"{transport}-{count}": at("rows", {"tool": tool, "receivers": count}, "gbps")},
            needs,
            needs_root=True,
        )
        for transport, tool in tools.items()
        for count, size in RECEIVERS.items()
    ]


ERA_1 = Era(
    name="6c053f2",
    marker="benchmarks/control_plane.py",
    setup=(("scripts/setup", "lab"), SET_UP_BYTECODE, SET_UP_FLOW),
    commands=(
        *cycles(),
        cycle_commands(),
        grant(),
        allocation("allocation_speed"),
        event("--model", "blast_controller.core", "--finish", "FinishAsked"),
        *transports({"optical": "optical", "pipeline": "pipeline", "unicast": "packets"}),
        FLOW,
        Command(("{python}", "{probes}/start_up.py", "4", "{blast}", "--version"), {"start-up": at("milliseconds")}),
    ),
    absent={
        "pass-1000": "no simulator on the controller's core in this era",
        "pass-10000": "no simulator on the controller's core in this era",
        "trees-1": "no trees transport in this era",
        "trees-7": "no trees transport in this era",
        "rack-fabric": "no rack-fabric simulator in this era",
    },
)

ERA_2 = Era(
    name="77a4610",
    marker="blast_sim/measuring/allocation_speed.py",
    setup=(("scripts/setup", "test"), SET_UP_BYTECODE, SET_UP_FLOW),
    commands=(
        *cycles(),
        cycle_commands("warm_reserve=0.0"),
        grant(),
        scheduling_pass(1000),
        scheduling_pass(10_000),
        allocation("blast_sim.measuring.allocation_speed"),
        event("--model", "blast_controller.core.model", "--finish", "FinishAsked"),
        *transports({"optical": "optical", "pipeline": "pipeline", "unicast": "unicast"}, needs=ENGINE),
        *transports({"trees": "trees"}, "{probes}/trees.py", ENGINE),
        FLOW,
        RACK_FABRIC,
        Command(
            ("{python}", "benchmarks/command_start.py", "--repeats", "4", "--json"),
            {"start-up": at("ms", "blast --version")},
        ),
    ),
)

ERA_3 = replace(
    ERA_2,
    name="e67822e",
    marker="requirements/debian-lint.txt",
    setup=(("scripts/setup", "lint"), SET_UP_BYTECODE, SET_UP_FLOW),
)

MEASURING, GARBAGE = "blast_sim.papers.blast.measuring", "blast_controller.process.garbage"
ERA_4 = replace(
    ERA_3,
    name="blast_sim/papers",
    marker="blast_sim/papers/blast/measuring/allocation_speed.py",
    commands=tuple(
        {
            "pass-1000": scheduling_pass(1000, MEASURING, GARBAGE),
            "pass-10000": scheduling_pass(10_000, MEASURING, GARBAGE),
            "allocation": allocation(f"{MEASURING}.allocation_speed"),
        }.get(next(iter(command.readings)), command)
        for command in ERA_3.commands
    ),
)

CONTROL_PLANE, TRANSFERS = "benchmarks/control_plane", "benchmarks/transfers"
CYCLES_MODULE, CYCLES_SCRIPT = "benchmarks.control_plane.cycles", f"{CONTROL_PLANE}/cycles.py"
ERA_5 = replace(
    ERA_4,
    name="benchmarks/control_plane",
    marker=CYCLES_SCRIPT,
    commands=(
        *cycles(CYCLES_SCRIPT),
        cycle_commands("warm_reserve=0.0", module=CYCLES_MODULE, script=CYCLES_SCRIPT),
        grant(CYCLES_MODULE, CYCLES_SCRIPT),
        scheduling_pass(1000, MEASURING, GARBAGE),
        scheduling_pass(10_000, MEASURING, GARBAGE),
        allocation(f"{MEASURING}.allocation_speed", f"{MEASURING.replace('.', '/')}/allocation_speed.py"),
        event(
            "--model",
            "blast_controller.core.model",
            "--finish",
            "FinishRequested",
            needs="tests/support/controller/core.py",
        ),
        *transports({one: one for one in ("optical", "pipeline", "unicast")}, f"{TRANSFERS}/rates.py", ENGINE),
        *transports({"trees": "trees"}, "{probes}/trees.py", ENGINE),
        FLOW,
        RACK_FABRIC,
        Command(
            ("{python}", f"{CONTROL_PLANE}/command_start.py", "--repeats", "4", "--json"),
            {"start-up": at("ms", "blast --version")},
        ),
    ),
)

ERAS = (ERA_5, ERA_4, ERA_3, ERA_2, ERA_1)
"""Newest first."""


def era_of(has: Callable[[str], bool]) -> Era | None:
    """Return the era of a commit, or None before the first era; `has` returns whether the commit has a path."""
    return next((era for era in ERAS if has(era.marker)), None)
