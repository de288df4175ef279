"""Checks of the unit files by systemd itself."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path

UNITS = Path(__file__).resolve().parents[2] / "packaging" / "systemd"


class _Sections(configparser.RawConfigParser):
    """A parser in which the last of repeated directives counts, and names keep their case."""

    def __init__(self) -> None:
        super().__init__(strict=False, interpolation=None, delimiters=("=",))

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def unit_of(path: Path) -> configparser.RawConfigParser:
    """Return the sections of a unit file."""
    unit = _Sections()
    unit.read(path)
    return unit


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze with these arguments."""
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
