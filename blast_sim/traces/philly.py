"""The job log of Microsoft's Philly clusters (msr-fiddle/philly-traces, cluster_job_log), as its README describes it.

    [{"jobid": "application_1", "status": "Pass", "vc": "…", "user": "…", "submitted_time": "2017-10-07 01:11:39",
      "attempts": [{"start_time": "2017-10-07 01:12:09", "end_time": "…", "detail": [{"ip": "m47", "gpus": […]}]}]}]

Every attempt on two or more servers is a job of its own. Attempts without a start are left out, as the log has some.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from blast_sim.base.wrong_input import InputError, list_of, shown
from blast_sim.traces.jobs import JobTable, TraceJob

TIME = "%Y-%m-%d %H:%M:%S"
NOT_RECORDED = (None, "", "None")


def read_philly(path: Path) -> JobTable:
    """Read the jobs of a file. Raises InputError, OSError."""
    return parse_philly(path.read_bytes(), str(path))


def parse_philly(data: bytes, name: str) -> JobTable:
    """Parse the jobs in these bytes; errors call them `name`. Raises InputError."""
    try:
        entries = json.loads(data)
    except RecursionError:
        raise InputError(f"{name}: this is no job log: its brackets are nested too deep") from None
    except ValueError as error:
        raise InputError(f"{name}: this is no JSON: {error}") from None
    jobs: list[TraceJob] = []
    left_out = 0
    for number, entry in enumerate(list_of(entries, f"{name}: the job log"), start=1):
        for job in _jobs(entry, f"{name}: job {number}"):
            if job is None:
                left_out += 1
            elif len(job.machines) > 1:
                jobs.append(job)
    return JobTable.of(jobs, left_out)


def _jobs(entry: object, where: str) -> Iterator[TraceJob | None]:
    """Yield a job for each attempt; None for an attempt without a start."""
    if not isinstance(entry, dict):
        raise InputError(f"{where} must be an object with jobid and attempts, not {shown(entry)}")
    identity = entry.get("jobid")
    if not isinstance(identity, str) or not identity:
        raise InputError(f"{where} has no jobid")
    place = f"{where} ({shown(identity)})"
    for number, attempt in enumerate(list_of(entry.get("attempts", []), f"{place}: attempts")):
        there = f"{place}: attempt {number}"
        if not isinstance(attempt, dict):
            raise InputError(f"{there} must be an object, not {shown(attempt)}")
        start = attempt.get("start_time")
        if start in NOT_RECORDED:
            yield None
        else:
            yield TraceJob(f"{identity}/{number}", _seconds(start, there), _servers(attempt, there))


def _servers(attempt: dict[str, object], where: str) -> tuple[str, ...]:
    servers: dict[str, None] = {}
    for detail in list_of(attempt.get("detail", []), f"{where}: detail"):
        server = detail.get("ip") if isinstance(detail, dict) else None
        if not isinstance(server, str) or not server:
            raise InputError(f"{where}: every entry of detail must have an ip, the server's name")
        servers[server] = None
    return tuple(servers)


def _seconds(text: object, where: str) -> float:
    try:
        return datetime.strptime(str(text), TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise InputError(f"{where}: start_time must be like 2017-10-07 01:12:09, not {shown(text)}") from None
