"""Exceptions of the TL1 driver by responsible party; each is one of `optical_switch.errors`, too.

    Tl1Error
    ├── DriverUsageError                the caller used the driver wrongly
    │   ├── InvalidCommandError         the command cannot be written as TL1, or is too long for the switch
    │   ├── SessionNotOpenError         the client never had a session
    │   └── OutcomeUnknownError         a change has no known outcome: read the circuits, or close, before the next
    └── SwitchError                     the switch, or the network path to it
        ├── SwitchUnreachableError      no session could be opened
        │   ├── HostKeyRefusedError     ... by SSH: the host key differs from the trusted one
        │   └── LoginRefusedError       ... by SSH: the switch refuses this user
        ├── SessionLostError            the session ended; the outcome of pending commands is unknown
        ├── SwitchTimeoutError          no final answer in time; the outcome of the command is unknown
        │   └── UnconfirmedCommandError an answer came that confirms nothing (NA, DELAY, RTRV)
        ├── SessionsInUseError          the switch refused a login, because others have all of its sessions
        ├── CommandDeniedError          the switch refused
        │   ├── PartialCompletionError  ... after doing a part of it (PRTL)
        │   ├── CommandWithheldError    ... or would have changed another client's connection: nothing was sent
        │   └── SwitchBusyError         ... and answered "repeat later" (RL) to every attempt
        └── MalformedTextError          the received text is not TL1
            ├── NotTl1Error             stray text between messages
            ├── TruncatedResponseError  a message that never ended
            ├── MessageTooLongError     a message over the receive limit
            └── MalformedResponseError  an answer whose rows differ from the dialect's format

After `SessionLostError`, `SwitchTimeoutError` and `PartialCompletionError` the circuits on the switch are unknown:
read them again.
"""

from __future__ import annotations

from optical_switch.errors import (
    OpticalSwitchError,
    ProtocolError,
    RefusedError,
    SessionLimitError,
    SwitchUsageError,
    UnreachableError,
)


class Tl1Error(OpticalSwitchError):
    """Base of all errors of this package."""


class DriverUsageError(Tl1Error, SwitchUsageError):
    """The driver was used wrongly."""


class InvalidCommandError(DriverUsageError):
    """The command cannot be written as TL1, or is longer than the switch accepts."""


class SessionNotOpenError(DriverUsageError):
    """The client never had a session: it was not opened, or no session could be established."""


class OutcomeUnknownError(DriverUsageError):
    """An earlier change ended without an answer: read the circuits, or close the session, before the next change."""


class SwitchError(Tl1Error):
    """The switch, or the network path to it, is at fault."""


class SwitchUnreachableError(SwitchError, UnreachableError):
    """No session could be established."""


class HostKeyRefusedError(SwitchUnreachableError):
    """The SSH server did not prove to be the switch: nothing was sent to it, not even a password."""


class LoginRefusedError(SwitchUnreachableError):
    """The switch is the right one and refuses this user by SSH."""


class SessionLostError(SwitchError, UnreachableError):
    """The session ended before the answer: the outcome of the command is unknown."""


class SwitchTimeoutError(SwitchError, UnreachableError):
    """No final answer within the deadline: the outcome of the command is unknown."""


class UnconfirmedCommandError(SwitchTimeoutError):
    """The switch answered with a code that confirms nothing: the outcome of the command is unknown."""


class SessionsInUseError(SwitchError, SessionLimitError):
    """The switch refused a login, because others have all of its sessions."""


class CommandDeniedError(SwitchError, RefusedError):
    """The switch refused; `code` has four letters, or is NG, RL or PRTL."""


class PartialCompletionError(CommandDeniedError):
    """The switch did a part of the command and refused the rest (PRTL)."""


class CommandWithheldError(CommandDeniedError):
    """The change would affect another client's connection, by the switch's own list. Nothing was changed."""


class SwitchBusyError(CommandDeniedError):
    """The switch answered "repeat later" (RL) to every attempt; nothing was done."""


class MalformedTextError(SwitchError, ProtocolError):
    """The received text is not TL1."""


class NotTl1Error(MalformedTextError):
    """Text between messages that is no prompt, echo or acknowledgment."""


class TruncatedResponseError(MalformedTextError):
    """A message without its terminator: the next one began inside it, or one of its parts is missing."""


class MessageTooLongError(MalformedTextError):
    """A message larger than the receive limit."""


class MalformedResponseError(MalformedTextError):
    """A well-formed answer whose rows differ from the dialect's format."""
