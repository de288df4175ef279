"""Says plainly that Apache Thrift is missing.

Without it `import thrift` may still succeed, as an empty namespace, wherever a folder of that name is in reach.
"""

from __future__ import annotations

from importlib.util import find_spec


def require_thrift() -> None:
    """Raise ImportError with a sentence that helps, unless Apache Thrift is installed."""
    found = find_spec("thrift")
    if found is None or found.origin is None:
        raise ImportError("Apache Thrift is not installed: pip install thrift", name="thrift")
