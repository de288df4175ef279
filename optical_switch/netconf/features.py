"""The features of a device that its hello announces as capabilities (RFC 6241, section 8; RFC 5277, section 6)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from optical_switch.errors import ProtocolError
from optical_switch.netconf.operations import Datastore

_CAPABILITY = "urn:ietf:params:netconf:capability:"


@dataclass(frozen=True, slots=True)
class EditFeatures:
    """Abilities to edit a configuration; each follows from a capability (RFC 6241, section 8).

    Parameters
    ----------
    candidate : bool
        True if there is a candidate to edit and commit. False: the running configuration is edited.
    rollback_on_error : bool
        True if an edit can leave a datastore as it was if it is refused.
    """

    candidate: bool
    rollback_on_error: bool

    @property
    def target(self) -> Datastore:
        """The datastore that edits change."""
        return "candidate" if self.candidate else "running"

    @property
    def locks(self) -> tuple[Datastore, ...]:
        """The datastores to lock, in this order."""
        return ("running", "candidate") if self.candidate else ("running",)

    @property
    def atomic(self) -> bool:
        """True if a refused change leaves the running configuration as it was."""
        return self.candidate or self.rollback_on_error


def edit_features(announced: Collection[str]) -> EditFeatures:
    """Return how a device edits its configuration.

    Parameters
    ----------
    announced : Collection[str]
        Capabilities of the device's hello.

    Returns
    -------
    EditFeatures
        The features.

    Raises
    ------
    ProtocolError
        If its configuration cannot be edited.
    """
    if not (has(announced, "candidate:1.0") or has(announced, "writable-running:1.0")):
        raise ProtocolError("the switch announces neither candidate:1.0 nor writable-running:1.0: it is read-only")
    return EditFeatures(
        candidate=has(announced, "candidate:1.0"),
        rollback_on_error=has(announced, "rollback-on-error:1.0"),
    )


def has(announced: Collection[str], name: str) -> bool:
    """Return true if a device announces the capability `name`, such as `notification:1.0`."""
    return f"{_CAPABILITY}{name}" in announced
