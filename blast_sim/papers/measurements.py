"""Results of the programs that measure: read where they are kept, measured where they are not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from blast_base.child_process import child_process
from blast_sim.base.report import Row
from blast_sim.base.wrong_input import InputError
from blast_sim.papers.blast import measuring

Tables = Mapping[str, list[Row]]
"""The rows of each table of a result."""

_GRACE_SECONDS = 60.0
"""Seconds in which a terminated script removes its resources."""
CHECKOUT = Path("benchmarks/transfers")
"""The folder of scripts that are not installed."""
MISSED_A_BAR = 1
"""Exit status of a benchmark whose figures miss a bar; they are figures all the same."""


class MeasurementFailedError(Exception):
    """A benchmark script ended without a result, which is its fault."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A program that measures, and the columns that the tables of its JSON must have.

    It is a module of `blast_sim.papers.blast.measuring`, unless it `needs_checkout`: a laboratory is no part of an
    installation. One that `keeps` takes hours: with --keep FILE it keeps its measurements there, and goes on after an
    interruption.
    """

    script: str
    columns: Mapping[str, Sequence[str]]
    keeps: bool = False
    needs_checkout: bool = False


BENCHMARKS = (
    Benchmark(
        "allocation_speed",
        {
            "table_one": ("method", "racks", "milliseconds"),
            "papers_table_one": ("method", "racks", "milliseconds"),
        },
    ),
    Benchmark(
        "allocation_quality",
        {
            "rows": ("case", "milliseconds", "greedy", "mean", "worst", "seeds", "proven"),
            "mixture": (
                "racks",
                "place",
                "counted",
                "amount",
                "greedy",
                "worst",
                "best",
                "optimizer",
                "seeds",
                "proven",
            ),
        },
    ),
    Benchmark(
        "completion_time",
        dict.fromkeys(
            ("completion", "policies"),
            ("workload", "load", "policy", "directional", "mean_s", "p99_s", "mean_service_s"),
        ),
    ),
)


def kept_in(folder: Path, benchmark: Benchmark) -> Path:
    """Return the file of the result of a benchmark."""
    return folder / f"{benchmark.script}.json"


def read(path: Path, benchmark: Benchmark) -> Tables:
    """Read the tables in a file. Raises InputError, OSError."""
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON: use --again to repeat the measurement") from None
    for name, columns in benchmark.columns.items():
        rows = data.get(name) if isinstance(data, dict) else None
        if not isinstance(rows, list) or not rows or any(not _has(row, columns) for row in rows):
            raise InputError(
                f"{path} has no table {name!r} with {', '.join(columns)}: use --again to repeat the measurement"
            )
    return {name: data[name] for name in benchmark.columns}


def measure(
    benchmark: Benchmark, scripts: Path | None, quick: bool, folder: Path, report: Callable[[str], None]
) -> None:
    """Run the program and store its result in `folder`; call `report` with its progress lines.

    `scripts` is a folder with other scripts of the same names. Raises InputError if the script is missing,
    and MeasurementFailedError.
    """
    script = _program(benchmark, scripts)
    path = kept_in(folder, benchmark)
    unfinished = path.with_suffix(".unfinished")
    # A quick result cannot be continued to a full one.
    cells = path.with_suffix(".quick-cells" if quick else ".cells")
    command = [sys.executable, *script, "--json", *(["--quick"] if quick else [])]
    command += ["--keep", str(cells)] if benchmark.keeps else []
    try:
        with (
            unfinished.open("wb") as result,
            # A terminal's Ctrl-C does not reach another session: `_end` ends the script.
            child_process(command, _end, stdout=result, stderr=subprocess.PIPE) as running,
        ):
            assert running.stderr is not None, "it was asked for"
            line = ""
            for line in _lines(running.stderr):
                report(line)
            running.wait()
        if running.returncode not in {0, MISSED_A_BAR}:
            raise MeasurementFailedError(f"{script[-1]} ended with status {running.returncode}: {line}")
        try:
            read(unfinished, benchmark)
        except InputError:
            raise MeasurementFailedError(f"{script[-1]} gave no result: {line}") from None
        unfinished.rename(path)
        cells.unlink(missing_ok=True)
    finally:
        unfinished.unlink(missing_ok=True)


def _program(benchmark: Benchmark, scripts: Path | None) -> list[str]:
    """Return the arguments of Python."""
    if scripts is None and not benchmark.needs_checkout:
        return ["-m", f"{measuring.__name__}.{benchmark.script}"]
    script = (scripts or CHECKOUT) / f"{benchmark.script}.py"
    if not script.is_file():
        raise InputError(f"{script} does not exist: run in a checkout, or name the folder with --benchmarks")
    return [str(script)] if scripts else ["-m", ".".join(script.with_suffix("").parts)]


def _end(running: subprocess.Popen[bytes]) -> None:
    """End a script and its children; SIGTERM lets it remove the hosts that it has made."""
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGTERM)
        try:
            running.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    if running.stderr is not None:
        running.stderr.close()


def _has(row: object, columns: Sequence[str]) -> bool:
    return isinstance(row, dict) and all(column in row for column in columns)


def _lines(stream: IO[bytes]) -> Iterator[str]:
    """Yield the output line by line; a line that overwrites another counts too."""
    rest = ""
    # Read whatever is available, so that progress appears at once.
    while data := stream.read1(1 << 12):  # type: ignore[attr-defined]
        *whole, rest = re.split(r"[\r\n]+", rest + data.decode(errors="replace"))
        yield from filter(None, map(_plain, whole))
    if _plain(rest):
        yield _plain(rest)


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).strip()
