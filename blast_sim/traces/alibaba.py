"""The instance table of Alibaba's GPU cluster of 2020 (clusterdata, cluster-trace-gpu-v2020, pai_instance_table.csv).

Columns, published in a file of their own: job_name, task_name, inst_name, worker_name, inst_id, status, start_time,
end_time, machine. The table may also begin with them. All machines of a job are a group from its first start on;
instances without a start or a machine are left out, as the table has some.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from blast_sim.base.wrong_input import InputError, shown
from blast_sim.traces.jobs import JobTable, TraceJob

COLUMNS = (
    "job_name",
    "task_name",
    "inst_name",
    "worker_name",
    "inst_id",
    "status",
    "start_time",
    "end_time",
    "machine",
)
NEEDED = ("job_name", "start_time", "machine")


def read_alibaba(path: Path) -> JobTable:
    """Read the jobs of a file, line by line. Raises InputError, OSError."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return parse_alibaba(file, str(path))
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text in UTF-8: name the unpacked table") from None


def parse_alibaba(lines: Iterable[str], name: str) -> JobTable:
    """Parse the jobs in these lines; errors call them `name`. Raises InputError with name and line."""
    starts: dict[str, float] = {}
    machines: dict[str, dict[str, None]] = {}
    left_out = 0
    for place, (job, start, machine) in _rows(lines, name):
        if not start or not machine:
            left_out += 1
            continue
        if not job:
            raise InputError(f"{place}: job_name is empty")
        starts[job] = min(starts.get(job, math.inf), _seconds(start, place))
        machines.setdefault(job, {})[machine] = None
    jobs = (TraceJob(job, start, tuple(machines[job])) for job, start in starts.items() if len(machines[job]) > 1)
    return JobTable.of(jobs, left_out)


def _rows(lines: Iterable[str], name: str) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield each row's place and its needed columns. Raises InputError."""
    reader = csv.reader(lines, strict=True)
    columns: Sequence[str] = COLUMNS
    taken = _taken(columns)
    begun = False
    while True:
        place = f"{name}:{reader.line_num + 1}"
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise InputError(f"{place}: this is no CSV: {error}") from None
        if row is None:
            return
        if not row:
            continue
        if not begun and "job_name" in row:
            columns = row
            for column in NEEDED:
                if column not in row:
                    raise InputError(f"{place}: the table has no column {column}: name the instance table")
            taken = _taken(columns)
        elif len(row) != len(columns):
            raise InputError(f"{place}: a row has {len(row)} columns, not {len(columns)}: name the instance table")
        else:
            yield place, (row[taken[0]], row[taken[1]], row[taken[2]])
        begun = True


def _taken(columns: Sequence[str]) -> tuple[int, int, int]:
    job, start, machine = (columns.index(column) for column in NEEDED)
    return job, start, machine


def _seconds(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) < math.inf:
        raise InputError(f"{place}: start_time must be a number of seconds, not {shown(text)}")
    return value
