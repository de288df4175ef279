"""`blast sim fabric-trace`: counts the events of a trace by kind."""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

from blast_sim.base.text import table
from blast_sim.fabric.trace import VERSION, TraceEventKind, read_trace


def run(arguments: argparse.Namespace) -> int:
    """Print the counts; return the exit status. Raises InputError, OSError."""
    counts: dict[TraceEventKind, int] = {}
    first: dict[TraceEventKind, int] = {}
    last: dict[TraceEventKind, int] = {}
    for events in read_trace(arguments.file):
        kinds = events["kind"]
        for kind in map(TraceEventKind, np.unique(kinds)):
            times = events["time_ps"][kinds == kind]
            counts[kind] = counts.get(kind, 0) + len(times)
            first.setdefault(kind, int(times[0]))
            last[kind] = int(times[-1])
    rows = [
        {"kind": kind.name.lower(), "events": counts[kind], "first_ps": first[kind], "last_ps": last[kind]}
        for kind in sorted(counts)
    ]
    if arguments.json:
        sys.stdout.write(json.dumps({"version": VERSION, "events": sum(counts.values()), "kinds": rows}) + "\n")
    else:
        header = ["kind", "events", "first_ps", "last_ps"]
        sys.stdout.write(table(header, [[str(row[column]) for column in header] for row in rows]) + "\n")
    return 0
