"""What can go wrong in a measurement."""

from __future__ import annotations


class RunFailed(Exception):
    """A tool did not do what it is there for: it ended, or was not done in time. One sentence."""


class CannotRun(Exception):
    """The machine lacks something that the measurement needs. One sentence that says what to do."""
