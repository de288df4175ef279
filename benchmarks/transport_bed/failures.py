"""Exceptions of measurements."""

from __future__ import annotations


class RunFailed(Exception):
    """A tool failed: it exited early, or did not complete in time. The message is one sentence."""


class CannotRun(Exception):
    """The machine lacks a prerequisite of the measurement. The message is one sentence with the remedy."""
