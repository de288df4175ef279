"""Modules that are compiled once for all processes of a bed, which are on one machine but have one each to start.

Where Python may write no bytecode, a hundred receivers would compile the same modules in the same second, and say
nothing meanwhile for longer than a sender waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX, _NONE = "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"


@contextmanager
def compiled_once(package: Path, folder: Path) -> Iterator[None]:
    """Processes that are started in the block find the modules of `package` in `folder`, and leave others there."""
    before = {name: os.environ.pop(name) for name in (_PREFIX, _NONE) if name in os.environ}
    os.environ[_PREFIX] = str(folder)
    try:
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(package)], check=True)
        yield
    finally:
        del os.environ[_PREFIX]
        os.environ.update(before)
