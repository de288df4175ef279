"""How versions are called: N.safetensors where they are released, MODEL-vN.safetensors where they have arrived.

Each version has a name of its own, and a higher number than all before. A file has its name only when it is whole: the
publisher's because it is moved into its folder, the worker's because the agent gives the name last.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

SUFFIX = ".safetensors"


def model_name(text: str) -> str:
    """Of a model, for an option: part of a file's name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of letters, digits, '.', '_' and '-'")
    return text


def seconds(text: str) -> float:
    """Between two looks, for an option."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.01 to 3600")
    return value


def name_of(model: str, version: int) -> str:
    """What a version is sent and received as."""
    return f"{model}-v{version}"


def released(folder: Path) -> dict[int, Path]:
    """The versions to publish. Raises OSError."""
    return _numbered(folder, "")


def arrived(folder: Path, model: str) -> dict[int, Path]:
    """The versions that are here, whole and verified. Raises OSError."""
    return _numbered(folder, f"{model}-v")


def _numbered(folder: Path, before: str) -> dict[int, Path]:
    form = re.compile(rf"{re.escape(before)}([1-9][0-9]{{0,17}}){re.escape(SUFFIX)}")
    found = {path: form.fullmatch(path.name) for path in folder.iterdir()}
    return dict(sorted((int(match[1]), path) for path, match in found.items() if match))
