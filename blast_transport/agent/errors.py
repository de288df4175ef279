"""What can go wrong in an agent and around it, and whose fault each one is."""

from __future__ import annotations

from blast_transport.errors import LocalError, RemoteError


class SettingsError(LocalError):
    """The operator's fault: the file cannot be read, breaks the schema or contradicts itself."""


class CannotListenError(LocalError):
    """The agent cannot listen where it should."""


class NotAllowedError(RemoteError):
    """A sender asks for what the agent's configuration does not allow."""


class AuthenticationError(RemoteError):
    """The other side does not prove who it is, or does not prove it in time."""
