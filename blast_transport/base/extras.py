"""The extras of the distribution: the one place that says how to install what an optional part needs.

Nothing is published, so that a checkout is what is installed, with the versions that were tested.
"""

from __future__ import annotations

from importlib.util import find_spec

CONSTRAINTS = "requirements/constraints.txt"


class NotInstalled(Exception):
    """Libraries of an extra are missing; one sentence that says how to get them."""


def how_to_install(extra: str) -> str:
    """What to do to get an extra, as the end of a sentence.

    >>> how_to_install("sim")
    "in a checkout of Blast run pip install -c requirements/constraints.txt '.[sim]'"
    """
    return f"in a checkout of Blast run pip install -c {CONSTRAINTS} '.[{extra}]'"


def require(extra: str, *modules: str) -> None:
    """Raise `NotInstalled` if one of these modules, which the extra brings, is missing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise NotInstalled(f"{', '.join(missing)} not installed: {how_to_install(extra)}")
