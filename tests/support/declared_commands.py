"""The sub-commands of `blast` as the project declares them, whether or not it is installed."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

from blast_client.cli.command import GROUP

_PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def declared_commands() -> list[EntryPoint]:
    """Return one entry for each command."""
    declared: dict[str, str] = tomllib.loads(_PROJECT.read_text())["project"]["entry-points"][GROUP]
    return [EntryPoint(name, value, GROUP) for name, value in declared.items()]
