"""The commands of the simulators, run in this process, and what they write: tables and pictures."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest

from blast_client.command import main


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run `blast` with these words; return status, output and errors."""
    status = main([str(word) for word in words])
    return (status, *capsys.readouterr())


def rows_of(table: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def texts(picture: Path) -> set[str]:
    """Return every text in an SVG picture."""
    return {"".join(element.itertext()).strip() for element in ElementTree.parse(picture).iter() if element.text}
