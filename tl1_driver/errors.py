"""Exceptions of the TL1 driver, in one hierarchy by responsible party.

    Tl1Error
    ├── OurFault              the caller used the driver wrongly
    │   ├── InvalidCommand        the command cannot be written as TL1, or is too long for the switch
    │   ├── InvalidSetting        a dialect has no such setting, or not with that value
    │   ├── NotOpen               the client has no session
    │   └── OutcomeUnknown        a change has no known outcome: read the circuits, or close, before the next
    └── SwitchFault           the switch, or the network path to it
        ├── SwitchUnreachable     no session could be opened
        │   ├── HostKeyRefused        ... by SSH: the host key differs from the trusted one
        │   └── LoginRefused          ... by SSH: the switch refuses this user
        ├── SessionLost           the session ended; the outcome of pending commands is unknown
        ├── TimedOut              no final answer in time; the outcome of the command is unknown
        │   └── NotConfirmed          an answer came that confirms nothing (NA, DELAY, RTRV)
        ├── Denied                the switch refused
        │   ├── PartlyDone            ... after doing a part of it (PRTL)
        │   ├── Withheld              ... or would have changed another client's connection: nothing was sent
        │   └── Busy                  ... and answered "repeat later" (RL) to every attempt
        └── MalformedText         the received text is not TL1
            ├── NotTl1                stray text between messages
            ├── Truncated             a message that never ended
            ├── MessageTooLong        a message over the receive limit
            └── MalformedAnswer       an answer whose rows differ from the dialect's format

After `SessionLost`, `TimedOut` and `PartlyDone` the connections on the switch are not known: read them again.
"""

from __future__ import annotations


class Tl1Error(Exception):
    """Base of all errors of this package."""


class OurFault(Tl1Error):
    """The driver was used wrongly."""


class InvalidCommand(OurFault):
    """The command cannot be written as TL1, or is longer than the switch accepts."""


class NotOpen(OurFault):
    """The client has no session: it was not opened, or was closed."""


class InvalidSetting(OurFault):
    """The dialect has no such setting, or not with that value."""


class OutcomeUnknown(OurFault):
    """An earlier change ended without an answer: read the circuits, or close the session, before the next change."""


class SwitchFault(Tl1Error):
    """The switch, or the network path to it, is at fault."""


class SwitchUnreachable(SwitchFault):
    """No session could be established."""


class HostKeyRefused(SwitchUnreachable):
    """The SSH server did not prove to be the switch: nothing was sent to it, not even a password."""


class LoginRefused(SwitchUnreachable):
    """The switch is the right one and refuses this user by SSH."""


class SessionLost(SwitchFault):
    """The session ended before the answer: the outcome of the command is unknown."""


class TimedOut(SwitchFault):
    """No final answer within the deadline: the outcome of the command is unknown."""


class NotConfirmed(TimedOut):
    """The switch answered with a code that confirms nothing: the outcome of the command is unknown."""


class Denied(SwitchFault):
    """The switch refused. `code` is its error code (four letters, or NG, RL, PRTL), `text` its explanation."""

    def __init__(self, code: str, text: str = "") -> None:
        self.code = code
        self.text = text
        super().__init__(f"{code}: {text}" if text else code)


class PartlyDone(Denied):
    """The switch did a part of the command and refused the rest (PRTL)."""


class Withheld(Denied):
    """The change would affect another client's connection, by the switch's own list. Nothing was changed."""


class Busy(Denied):
    """The switch answered "repeat later" (RL) to every attempt; nothing was done."""


class MalformedText(SwitchFault):
    """The received text is not TL1."""


class NotTl1(MalformedText):
    """Text between messages that is no prompt, echo or acknowledgment."""


class Truncated(MalformedText):
    """A message without its terminator: the next one began inside it, or one of its parts is missing."""


class MessageTooLong(MalformedText):
    """A message larger than the receive limit."""


class MalformedAnswer(MalformedText):
    """A well-formed answer whose rows differ from the dialect's format."""
