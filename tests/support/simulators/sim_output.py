"""The commands of the simulators, run in this process, and what they write: tables and pictures."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest

from blast_client.cli.command import main


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run `blast` with these words; return status, output and errors."""
    status = main([str(word) for word in words])
    return (status, *capsys.readouterr())


def rows_of(table: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with table.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def texts(picture: Path) -> set[str]:
    """Return every text in an SVG picture that is drawn."""
    root = ElementTree.parse(picture).getroot()
    for metadata in root.findall("{http://www.w3.org/2000/svg}metadata"):
        root.remove(metadata)
    return {"".join(element.itertext()).strip() for element in root.iter() if element.text}
