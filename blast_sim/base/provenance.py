"""Where a result is from: all that another person needs to check it, and to compute it again.

Every JSON result has it under the key `provenance`; every CSV begins with it, a line for each key, behind `# `. Both
are the same keys with JSON values, sorted. `blast sim rerun` computes a result again from them alone.

| key | is |
|---|---|
| `format` | version of these keys: 1 |
| `kind` | what made the result: flow, replay, fabric, a kept cell of one of them, plan, … |
| `request` | what was asked for: the whole text of the scenario with its SHA-256, a trace's name and SHA-256, options |
| `seeds` | the seeds that were asked for |
| `plugins` | policies and methods from outside the package, each with the SHA-256 of its source |
| `blast` | version; commit and whether files differed from it, in a checkout; SHA-256 of the code |
| `engine` | the solver, versions of Python and the libraries that calculate, SHA-256 of the rack-fabric simulator |
| `machine` | processor, cores, operating system |
| `duration` | seconds of wall time, and of CPU time of this machine's processes (null: not known) |
| `command` | the command line |
| `date` | when the result was complete, UTC |
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import resource
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from blast_base.json_types import JsonObject
from blast_sim.base.software import Software, checkout, installed_version, software

FORMAT = 1
COMMENT = "# "
DISTRIBUTION = "blast-controller"
LONGEST_TEXT = 1 << 20
"""Bytes of an input file that a result repeats."""

Json = JsonObject


@dataclass(frozen=True, slots=True)
class Plugin:
    """A policy or method from outside the package: its kind, its name, and the SHA-256 of its source."""

    kind: str
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The request that a result answers.

    Attributes
    ----------
    kind : str
        The kind of result, such as `flow`.
    request : mapping
        All data that is needed to repeat the request, as JSON values.
    seeds : sequence of int
        The seeds in the request.
    plugins : sequence of Plugin
        The plug-in policies and methods that were used.
    rack_fabric : str or None
        SHA-256 of the rack-fabric simulator, if it was used.
    """

    kind: str
    request: JsonObject = field(default_factory=dict)
    seeds: Sequence[int] = ()
    plugins: Sequence[Plugin] = ()
    rack_fabric: str | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """An `origin` with when, where, by what and how long the result was computed."""

    origin: Origin
    software: Software
    machine: JsonObject
    wall_seconds: float
    cpu_seconds: float | None
    command: str
    date: str

    def as_dict(self) -> Json:
        """Return all of it as JSON knows it, the keys sorted."""
        origin, found = self.origin, checkout()
        record = {
            "format": FORMAT,
            "kind": origin.kind,
            "request": dict(origin.request),
            "seeds": list(origin.seeds),
            "plugins": [asdict(one) for one in origin.plugins],
            "blast": {
                "version": installed_version(DISTRIBUTION),
                "commit": None if found is None else found.commit,
                "modified": None if found is None else found.modified,
                "code": self.software.code,
            },
            "engine": {
                "solver": self.software.solver,
                "versions": dict(self.software.versions),
                "rack_fabric": origin.rack_fabric,
            },
            "machine": dict(self.machine),
            "duration": {"wall_seconds": self.wall_seconds, "cpu_seconds": self.cpu_seconds},
            "command": self.command,
            "date": self.date,
        }
        return dict(sorted(record.items()))

    def as_comment_lines(self) -> str:
        """Return the lines that stand before the header of a CSV file."""
        return "".join(f"{COMMENT}{key}: {_compact(value)}\n" for key, value in self.as_dict().items())

    def as_metadata(self) -> str:
        """Return it as one line of JSON, the keys sorted, for the metadata of a picture or of a Parquet file."""
        return _compact(self.as_dict())

    def picture_metadata(self, kind: str) -> dict[str, str | None]:
        """Return the metadata that matplotlib writes into an SVG, PNG or PDF picture."""
        if kind == "pdf":
            return {"Subject": self.as_metadata(), "CreationDate": None}
        return {"Description": self.as_metadata(), **({"Date": None} if kind == "svg" else {})}


class Recording:
    """Measures how long a result takes, from here to `provenance`."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), _cpu_seconds()

    def provenance(self, origin: Origin, cpu_known: bool = True) -> Provenance:
        """Return where the result is from that is complete now.

        `cpu_known` is False where other results are computed in the same process, or by programs of their own.
        """
        return Provenance(
            origin,
            software(),
            machine(),
            round(time.perf_counter() - self._wall, 3),
            round(_cpu_seconds() - self._cpu, 3) if cpu_known else None,
            command_line(),
            datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )


def with_provenance(provenance: Provenance, answer: JsonObject) -> Json:
    """Return a JSON result that begins with its provenance."""
    return {"provenance": provenance.as_dict(), **answer}


def of_comment_lines(text: str) -> tuple[Json, str]:
    """Return what stands before the header of a CSV file, and the rest. Raises ValueError for a line that is none."""
    record, lines = JsonObject(), text.splitlines(keepends=True)
    count = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    for line in lines[:count]:
        key, _, value = line.removeprefix(COMMENT).partition(":")
        record[key] = json.loads(value)
    return record, "".join(lines[count:])


@cache
def machine() -> JsonObject:
    """Return the processor, its cores and the operating system of this machine, without its name."""
    return {"cpu": processor(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.release()}"}


def processor() -> str:
    """Return the model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if "model name" in line)
    return next(models, platform.machine())


def command_line() -> str:
    """Return the command line of this process, without the folder of the program."""
    program = Path(sys.argv[0])
    folder = program.parent.name
    name = "blast" if folder == "blast_client" else folder if program.name == "__main__.py" else program.name
    return shlex.join([name, *sys.argv[1:]])


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_input(name: str, data: bytes) -> dict[str, str]:
    """Return the record of an input file: its name, its digest, and its text unless that is long."""
    record = {"name": name, "sha256": hashlib.sha256(data).hexdigest()}
    return record if len(data) > LONGEST_TEXT else {**record, "text": data.decode(errors="replace")}


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True)
