"""What systemd itself says of our unit files."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path

UNITS = Path(__file__).resolve().parents[2] / "packaging" / "systemd"


class _Sections(configparser.RawConfigParser):
    """Of a directive that is given twice the last one counts; names keep their case."""

    def __init__(self) -> None:
        super().__init__(strict=False, interpolation=None, delimiters=("=",))

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def unit_of(path: Path) -> configparser.RawConfigParser:
    """The sections of a unit file."""
    unit = _Sections()
    unit.read(path)
    return unit


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """systemd-analyze with these arguments."""
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
