"""The workload of a replay, from the common options of `blast sim replay` and `blast lab replay`."""

from __future__ import annotations

import argparse
from hashlib import sha256
from pathlib import Path

from algorithms.scheduling import POLICIES
from blast_sim.base.provenance import Json, file_digest
from blast_sim.base.wrong_input import InputError
from blast_sim.plugins.loading import is_plugin, require_plugin
from blast_sim.traces.deriving import Volume
from blast_sim.traces.loading import Derivation, load_workload
from blast_sim.traces.synthetic import OURS, sample_data
from blast_sim.traces.workload import Workload

ALL = "all"


def workload_from(arguments: argparse.Namespace) -> Workload:
    """Return the workload of the trace. Raises InputError, OSError."""
    how = Derivation(
        rule=arguments.rule,
        volume=_volume(arguments.volume),
        seed=arguments.seed,
        iterations=arguments.iterations,
        period=arguments.period,
        first=arguments.first,
        machines_per_rack=arguments.machines_per_rack,
        placement=arguments.placement,
    )
    return load_workload(arguments.trace, arguments.format, how)


def describe_trace(name: str, form: str) -> Json:
    """Return the record of a trace: the name or path, and the SHA-256. Raises OSError."""
    data = sample_data(name) if form == "coflow" and name in OURS else None
    return {"name": name, "sha256": file_digest(Path(name)) if data is None else sha256(data).hexdigest()}


def policies_from(text: str, plugins: bool = False) -> list[str]:
    """Return the policies that `--policy` names; with `plugins` it may name plug-ins, which are loaded.

    Raises InputError, PluginFailedError.
    """
    names = list(POLICIES) if text == ALL else list(dict.fromkeys(filter(None, text.split(","))))
    for name in names:
        if plugins and is_plugin("policy", name):
            require_plugin("policy", name)
        elif name not in POLICIES:
            raise InputError(f"--policy {name!r} is none: there are {', '.join(POLICIES)}, and {ALL}")
    if not names:
        raise InputError(f"--policy names none: there are {', '.join(POLICIES)}, and {ALL}")
    return names


def _volume(text: str) -> Volume:
    if text == "maximum":
        return Volume(measure="maximum")
    if text == "median":
        return Volume(measure="median")
    try:
        megabytes = float(text)
    except ValueError:
        megabytes = 0.0
    if not 0 < megabytes <= 1e9:
        raise InputError(f"--volume {text!r} is neither maximum, nor median, nor a number of megabytes above 0")
    return Volume(megabytes)
