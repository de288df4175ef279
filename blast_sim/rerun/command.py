"""`blast sim rerun`: reads a result, recomputes it, and reports differences."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator

from blast_sim.base.provenance import Json, Origin, Provenance, Recording, file_digest, with_provenance
from blast_sim.rerun.comparing import Compared, compared
from blast_sim.rerun.repeating import again
from blast_sim.rerun.result_file import ResultFile

SAME, DIFFERENT = 0, 1


def run(arguments: argparse.Namespace, file: ResultFile) -> int:
    """Recompute the result and print the comparison; return the exit status.

    Raises InputError, PluginFailedError, NoSimulatorError, RunFailedError, StalledError, WorkerDiedError, OSError.
    """
    recording = Recording()
    found = again(file, arguments.processes)
    results = compared(found.recorded, found.parts)
    request = {"file": {"name": str(file.path), "sha256": file_digest(file.path)}}
    provenance = recording.provenance(Origin("rerun", request, rack_fabric=_rack_fabric(file)))
    notes = list(_notes(file, provenance))
    if arguments.json:
        record = {
            "made_by": file.provenance.get("blast"),
            "notes": notes,
            "results": [one.as_dict() for one in results],
        }
        sys.stdout.write(json.dumps(with_provenance(provenance, record), indent=1) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in [*notes, *map(str, results), _summary(results)]))
    return DIFFERENT if any(one.verdict == "different" for one in results) else SAME


def _summary(results: list[Compared]) -> str:
    counts = Counter(one.verdict for one in results)
    return f"{len(results)} results: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}"


def _rack_fabric(file: ResultFile) -> str | None:
    if file.part("engine", "rack_fabric") is None:
        return None
    from blast_sim.fabric.simulator import Simulator, program

    return Simulator(program()).version()


def _notes(file: ResultFile, here: Provenance) -> Iterator[str]:
    """Yield the differences from the software that made the file, which may explain differing results."""
    now, made = here.as_dict(), file.provenance
    if file.part("blast", "code") != now["blast"]["code"]:
        yield f"the file was made by {_version(made['blast'])}, and this is {_version(now['blast'])}"
    for field in ("solver", "versions", "rack_fabric"):
        before, after = file.part("engine", field), now["engine"][field]
        if before == after:
            continue
        if field == "rack_fabric":
            yield "the file was made by another build of the rack-fabric simulator"
        elif field == "solver":
            yield f"the file was made with the solver {before}, and this is {after}: the last digits may differ"
        else:
            names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
            pairs = ", ".join(f"{name} {before.get(name, 'none')} (here {after.get(name, 'none')})" for name in names)
            yield f"the file was made with {pairs}"


def _version(blast: Json) -> str:
    commit = blast.get("commit")
    if commit is None:
        return f"blast {blast.get('version')}, an installation with the code {str(blast.get('code'))[:12]}"
    return f"commit {commit}{' with changes' if blast.get('modified') else ''}"
