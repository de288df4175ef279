"""`benchmarks/transfers/rates.py` of the commit under test with one more tool, `trees`: Blast along balanced trees.

The plan has one tree for each receiver, which is optimal for hosts with equal links. Its rate is above that of the
machine, as for the other transports on unshaped links. Options are those of that script.

    {python} trees.py --tools trees --cells unshaped:7 --megabytes 100 --repeats 1 --json
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_UNSHAPED_BITS_PER_SECOND = 1e11


def main() -> None:
    """Add the tool and run the script."""
    sys.path[:0] = [str(Path.cwd()), str(Path.cwd() / "benchmarks")]
    in_areas = Path("benchmarks/transfers").is_dir()
    bed, script = (
        ("benchmarks.transfers.bed", "benchmarks.transfers.rates") if in_areas else ("transport_bed", "transport")
    )
    tools: dict[str, Any] = import_module(f"{bed}.tools").TOOLS
    tools["trees"] = _trees(import_module(f"{bed}.tools.blast").BlastPipeline)
    import_module(f"{bed}.script").run(import_module(script).main)


def _trees(blast: Any) -> Any:
    """Return the class of the tool, derived from that of a transport without additional options."""

    def transport_options(self: Any, run: Any) -> list[str]:
        names = [self.name_of(receiver) for receiver in run.receivers]
        file = run.folder / "plan.json"
        file.write_text(json.dumps({"trees": [_tree(names, first) for first in names]}))
        return [f"--{era}", "trees", "--trees", str(file)]

    # Commits up to 15db210e have another name for the option.
    era = "transport" if hasattr(blast, "transport_options") else "carrier"
    namespace = {"name": "trees", "title": "Blast, trees", f"{era}_options": transport_options}
    return type("BlastTrees", (blast,), namespace)


def _tree(names: list[str], first: str) -> dict[str, Any]:
    """Return the tree in which `first` receives from the sender and forwards everything to the other hosts."""
    edges = [["sender", first], *([first, other] for other in names if other != first)]
    return {"rate": _UNSHAPED_BITS_PER_SECOND / len(names), "edges": edges}


if __name__ == "__main__":
    main()
