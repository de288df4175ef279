"""Every error of the transport, and whose fault each one is.

`LocalError` is raised for what this side did or has (wrong arguments, a file that shrank, an interface that is
down), `RemoteError` for what the other side sent. The text is one sentence for the person who reads it.
"""

from __future__ import annotations


class TransportError(Exception):
    """Base of all errors of `blast_transport`."""


class LocalError(TransportError):
    """The fault is on this side."""


class WrongInputError(LocalError):
    """An argument cannot be used: no such file, no such interface, a rate of zero."""


class SourceChangedError(LocalError):
    """The file being sent became shorter while it was read."""


class LightPathError(LocalError):
    """An interface of this host rejects datagrams to a group."""


class StoreError(LocalError):
    """The receiver's target takes no more: no room, a command that ended, a file system that fails."""


class EngineError(LocalError):
    """The compiled engine violated one of its invariants: a fault of the program."""


class NoThreadError(LocalError):
    """The system gives this process no more threads."""


class ForgottenError(LocalError):
    """The requested bytes are no longer held; `first_held` is the smallest offset that is."""

    def __init__(self, first_held: int) -> None:
        super().__init__(f"bytes before {first_held} are no longer held")
        self.first_held = first_held


class LocalProtocolError(LocalError):
    """A message that this program may not send, or an event that the state of a core forbids."""


class RemoteError(TransportError):
    """The fault is on the other side."""


class RemoteProtocolError(RemoteError):
    """The other side sent bytes or a message that the protocol does not allow here."""


class UnsafeNameError(RemoteError):
    """The file name from the wire is not a plain base name."""


class BrokenDigestError(RemoteError):
    """The sender offers digests that can be forged."""


class SealError(RemoteError):
    """A sealed block was changed on its way, or was sealed with another key."""


class DigestMismatchError(RemoteError):
    """All bytes arrived, but they are not the ones that were sent."""


class SettingsError(LocalError):
    """The operator's fault: the file cannot be read, breaks the schema or contradicts itself."""


class CannotListenError(LocalError):
    """The agent cannot listen where it should."""


class NotAllowedError(RemoteError):
    """A sender asks for what the agent's configuration does not allow."""


class AuthenticationError(RemoteError):
    """The other side does not prove who it is, or does not prove it in time."""


def sentence(error: Exception) -> str:
    """Return the cause for the middle of a sentence; for errors of the system its text without the number."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
