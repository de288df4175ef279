"""The agent as a single file that needs nothing but Python: a zip archive that `python3` runs (PEP 441).

The same sources give the same bytes, wherever and whenever it is made (by the same zlib).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

PACKAGE = "blast_transport"
_PACKAGES = ("blast_base", PACKAGE)
OLDEST_PYTHON = (3, 11)

_SHEBANG = b"#!/usr/bin/env python3\n"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16
"""Mode -rw-r--r-- in the upper half of the attributes, as zip archives of Unix have it."""
_SUFFIXES = (".py", ".toml")

# Every Python of the last twenty years must parse this, to report that it is too old.
_MAIN = f"""\
import sys

if sys.version_info < {OLDEST_PYTHON}:
    sys.stdout.write('{{"event": "unusable", "reason": "Python %d.%d is too old; ' % sys.version_info[:2])
    sys.stdout.write('{OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} is needed"}}\\n')
    sys.exit(1)
if sys.argv[1:] == ["on-demand"]:
    from {PACKAGE}.remote.on_demand import run
    run()
from {PACKAGE}.agent.command import main
sys.exit(main())
"""


def build_bundle() -> bytes:
    """Return the bundle: `python3 -I -S FILE run --config …` is `blast agent run`; `on-demand` runs `on_demand`."""
    archive = io.BytesIO()
    archive.write(_SHEBANG)
    with zipfile.ZipFile(archive, "w") as bundle:
        _add(bundle, "__main__.py", _MAIN.encode())
        for package in _PACKAGES:
            for name, source in sorted(_sources(files(package), package)):
                _add(bundle, name, source)
    return archive.getvalue()


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, path)
        elif entry.name.endswith(_SUFFIXES):
            yield path, entry.read_bytes()


def _add(bundle: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.external_attr = _REGULAR_FILE
    entry.create_system = 3
    entry.compress_type = zipfile.ZIP_DEFLATED
    bundle.writestr(entry, content, compresslevel=9)
