"""Objects from files, as an agent creates them: written beside, and then renamed into place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from blast_client.objects.encoding import opened
from blast_client.objects.receiving import receive


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a folder for one example: a fixture's folder is shared by all examples."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


def file_of(data: object) -> tuple[bytes, str]:
    """Return the file content, and the suffix of its file."""
    with opened(data) as (source, suffix):
        content = bytearray(source.size or 0)
        assert source.read(0, memoryview(content)) == len(content)
    return bytes(content), suffix


def put(folder: Path, name: str, content: bytes) -> Path:
    """Write a file, and move it into place."""
    partial = folder / ".blast-partial"
    partial.write_bytes(content)
    return partial.rename(folder / name)


def there(folder: Path, data: object, name: str = "it", **how: Any) -> Any:
    """Return the file that a receiver gets."""
    content, suffix = file_of(data)
    path = put(folder, f"{name}{suffix}", content)
    # Files of the same instant would count as new.
    os.utime(path, ns=(path.stat().st_atime_ns, max(_times(folder), default=0) + 1))
    return receive(name, folder, timeout=0, **how)


def _times(folder: Path) -> list[int]:
    return [path.stat().st_mtime_ns for path in folder.iterdir()]
