"""A clear error for a missing Apache Thrift.

Without the library, `import thrift` may succeed as an empty namespace package if a directory has that name.
"""

from __future__ import annotations

from importlib.util import find_spec


def require_thrift() -> None:
    """Raise ImportError unless Apache Thrift is installed."""
    found = find_spec("thrift")
    if found is None or found.origin is None:
        raise ImportError("Apache Thrift is not installed: pip install thrift", name="thrift")
