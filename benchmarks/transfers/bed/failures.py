"""Exceptions of measurements."""

from __future__ import annotations


class RunFailedError(Exception):
    """A tool failed: it exited early, or did not complete in time. The message is one sentence."""


class PrerequisiteError(Exception):
    """The machine lacks a prerequisite of the measurement. The message is one sentence with the remedy."""
