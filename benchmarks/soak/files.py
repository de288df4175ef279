"""Whether a file that has come is the file that was sent, by its bytes, whatever sender and agents say."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Received:
    """What receivers had after one client's transfers: `intact` files, how many transfers light
    carried any of, and a sentence for each wrong one."""

    intact: int = 0
    by_light: int = 0
    wrong: list[str] = field(default_factory=list)


def verdict(name: str, digest: str, copy: Path, said_to_be_there: bool) -> str | None:
    """What is wrong with a receiver's copy; None for one that is right, or that nobody said was there."""
    if not copy.exists():
        return f"{name}: the sender says that it is there, and it is not" if said_to_be_there else None
    if sha256(copy) != digest:
        return f"{name}: its SHA-256 is not the original's"
    return None


def went_by_light(lines: str) -> bool:
    """From the JSON lines of `blast send`: whether light carried any of it."""
    return any("optical" in transfer["carriers"] for transfer in _result(lines).get("transfers", ()))


def reasons(lines: str) -> str:
    """From the JSON lines of `blast send`: why receivers do not have it, each reason once."""
    result = _result(lines)
    receivers = [one for transfer in result.get("transfers", ()) for one in transfer.get("receivers", ())]
    failed = [one["reason"] for one in receivers if not one["complete"]]
    unreachable = [*result.get("unreachable", {}).values()]
    return "; ".join(dict.fromkeys([*unreachable, *failed, *filter(None, [result.get("no_light")])]))


def _result(lines: str) -> dict[str, Any]:
    for line in reversed(lines.splitlines()):
        said: dict[str, Any] = json.loads(line)
        if said.get("event") == "result":
            return said
    return {}


def sha256(path: Path) -> str:
    """In hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
