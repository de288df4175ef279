"""Exceptions of the TL1 driver, in one hierarchy by responsible party.

    Tl1Error
    ├── DriverUsageError                the caller used the driver wrongly
    │   ├── InvalidCommandError         the command cannot be written as TL1, or is too long for the switch
    │   ├── InvalidSettingError         a dialect has no such setting, or not with that value
    │   ├── SessionNotOpenError         the client never had a session
    │   └── OutcomeUnknownError         a change has no known outcome: read the circuits, or close, before the next
    └── SwitchError                     the switch, or the network path to it
        ├── SwitchUnreachableError      no session could be opened
        │   ├── HostKeyRefusedError     ... by SSH: the host key differs from the trusted one
        │   └── LoginRefusedError       ... by SSH: the switch refuses this user
        ├── SessionLostError            the session ended; the outcome of pending commands is unknown
        ├── SwitchTimeoutError          no final answer in time; the outcome of the command is unknown
        │   └── UnconfirmedCommandError an answer came that confirms nothing (NA, DELAY, RTRV)
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


class Tl1Error(Exception):
    """Base of all errors of this package."""


class DriverUsageError(Tl1Error):
    """The driver was used wrongly."""


class InvalidCommandError(DriverUsageError):
    """The command cannot be written as TL1, or is longer than the switch accepts."""


class SessionNotOpenError(DriverUsageError):
    """The client never had a session: it was not opened, or no session could be established."""


class InvalidSettingError(DriverUsageError):
    """The dialect has no such setting, or not with that value."""


class OutcomeUnknownError(DriverUsageError):
    """An earlier change ended without an answer: read the circuits, or close the session, before the next change."""


class SwitchError(Tl1Error):
    """The switch, or the network path to it, is at fault."""


class SwitchUnreachableError(SwitchError):
    """No session could be established."""


class HostKeyRefusedError(SwitchUnreachableError):
    """The SSH server did not prove to be the switch: nothing was sent to it, not even a password."""


class LoginRefusedError(SwitchUnreachableError):
    """The switch is the right one and refuses this user by SSH."""


class SessionLostError(SwitchError):
    """The session ended before the answer: the outcome of the command is unknown."""


class SwitchTimeoutError(SwitchError):
    """No final answer within the deadline: the outcome of the command is unknown."""


class UnconfirmedCommandError(SwitchTimeoutError):
    """The switch answered with a code that confirms nothing: the outcome of the command is unknown."""


class CommandDeniedError(SwitchError):
    """The switch refused.

    Parameters
    ----------
    code : str
        Error code of the switch: four letters, or NG, RL, PRTL.
    text : str
        Explanation of the switch.
    """

    def __init__(self, code: str, text: str = "") -> None:
        self.code = code
        self.text = text
        super().__init__(f"{code}: {text}" if text else code)


class PartialCompletionError(CommandDeniedError):
    """The switch did a part of the command and refused the rest (PRTL)."""


class CommandWithheldError(CommandDeniedError):
    """The change would affect another client's connection, by the switch's own list. Nothing was changed."""


class SwitchBusyError(CommandDeniedError):
    """The switch answered "repeat later" (RL) to every attempt; nothing was done."""


class MalformedTextError(SwitchError):
    """The received text is not TL1."""


class NotTl1Error(MalformedTextError):
    """Text between messages that is no prompt, echo or acknowledgment."""


class TruncatedResponseError(MalformedTextError):
    """A message without its terminator: the next one began inside it, or one of its parts is missing."""


class MessageTooLongError(MalformedTextError):
    """A message larger than the receive limit."""


class MalformedResponseError(MalformedTextError):
    """A well-formed answer whose rows differ from the dialect's format."""
