"""The extras of the distribution, and how to install them.

The distribution is not published: it is installed from a checkout, with the tested versions.
"""

from __future__ import annotations

from importlib.util import find_spec

CONSTRAINTS = "requirements/constraints.txt"


class NotInstalledError(Exception):
    """Libraries of an extra are missing; the message is one sentence with the command that installs them."""


def how_to_install(extra: str) -> str:
    """Return how to install an extra, as the end of a sentence.

    >>> how_to_install("sim")
    "in a checkout of Blast run pip install -c requirements/constraints.txt '.[sim]'"
    """
    return f"in a checkout of Blast run pip install -c {CONSTRAINTS} '.[{extra}]'"


def require(extra: str, *modules: str) -> None:
    """Raise `NotInstalledError` if one of these modules, which the extra provides, is missing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise NotInstalledError(f"{', '.join(missing)} not installed: {how_to_install(extra)}")
