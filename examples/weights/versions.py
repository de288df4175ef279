"""Names of versions: N.safetensors at the publisher, MODEL-vN.safetensors at the workers.

Version numbers only increase. A file under its final name is complete: a release is moved into its directory, and the
agent renames a received file after the verification.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

SUFFIX = ".safetensors"


def model_name(text: str) -> str:
    """Parse a model name, which becomes a part of file names."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a name of up to 100 letters, digits, '.', '_' and '-'")
    return text


def seconds(text: str) -> float:
    """Parse an interval in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.01 to 3600")
    return value


def name_of(model: str, version: int) -> str:
    """Return the name of a version for `broadcast` and `receive`."""
    return f"{model}-v{version}"


def released(folder: Path) -> dict[int, Path]:
    """Return the released versions with their files, in order. Raise OSError."""
    return _numbered(folder, "")


def arrived(folder: Path, model: str) -> dict[int, Path]:
    """Return the complete and verified versions in the agent's folder, in order. Raise OSError."""
    return _numbered(folder, f"{model}-v")


def _numbered(folder: Path, before: str) -> dict[int, Path]:
    form = re.compile(rf"{re.escape(before)}([1-9][0-9]{{0,17}}){re.escape(SUFFIX)}")
    found = {path: form.fullmatch(path.name) for path in folder.iterdir()}
    return dict(sorted((int(match[1]), path) for path, match in found.items() if match))
