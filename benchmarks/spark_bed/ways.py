"""By what the broadcasts of a job with the plugin went, as that tells in Spark's event log."""

from __future__ import annotations

import json
from pathlib import Path

_SENT = "org.blast.spark.BroadcastSent"


def ways_of_plugin(event_file: Path) -> list[str]:
    """Of each that was offered to Blast, in order: "optical", "pipeline+optical", "spark" for one that was given up."""
    lines = event_file.read_text().splitlines()
    return [str(json.loads(line)["way"]) for line in lines if _SENT in line[:60]]
