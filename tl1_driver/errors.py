"""Everything that can go wrong with a TL1 switch, in one tree that says whose fault it is.

    Tl1Error
    ├── OurFault              we used the driver wrongly
    │   ├── InvalidCommand        the command cannot be written as TL1, or is too long for the switch
    │   ├── InvalidSetting        a dialect has no such setting, or not with that value
    │   ├── NotOpen               the client has no session
    │   └── OutcomeUnknown        a change has no known outcome: read the circuits, or close, before the next
    └── SwitchFault           the switch, or the way to it
        ├── SwitchUnreachable     no session could be had
        │   ├── HostKeyRefused        ... by SSH: whoever answers has another host key than the one that is trusted
        │   └── LoginRefused          ... by SSH: the switch does not let this user in
        ├── SessionLost           the session ended; what was under way is unknown
        ├── TimedOut              no final answer in time; what the switch did is unknown
        │   └── NotConfirmed          an answer came that promises nothing (NA, DELAY, RTRV)
        ├── Denied                the switch refused
        │   ├── PartlyDone            ... after doing a part of it (PRTL)
        │   ├── Withheld              ... or would have hit a connection that is not ours: nothing was sent
        │   └── Busy                  ... and said "repeat later" (RL) each time we asked
        └── MalformedText         what arrived is not TL1
            ├── NotTl1                stray text between messages
            ├── Truncated             a message that never ended
            ├── MessageTooLong        a message over the receive limit
            └── MalformedAnswer       an answer whose rows do not say what the dialect promises

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
    """The switch, or the network on the way to it, is at fault."""


class SwitchUnreachable(SwitchFault):
    """No session could be established."""


class HostKeyRefused(SwitchUnreachable):
    """Whoever answers by SSH has not proved to be the switch: nothing was said to it, no password either."""


class LoginRefused(SwitchUnreachable):
    """The switch is the right one and does not let this user in by SSH."""


class SessionLost(SwitchFault):
    """The session ended before the answer: what the switch did is unknown."""


class TimedOut(SwitchFault):
    """No final answer within the deadline: what the switch did is unknown."""


class NotConfirmed(TimedOut):
    """The switch answered, but with a code that promises nothing: what it did is unknown."""


class Denied(SwitchFault):
    """The switch refused. `code` is its error code (four letters, or NG, RL, PRTL), `text` its explanation."""

    def __init__(self, code: str, text: str = "") -> None:
        self.code = code
        self.text = text
        super().__init__(f"{code}: {text}" if text else code)


class PartlyDone(Denied):
    """The switch did a part of what was asked and refused the rest (PRTL)."""


class Withheld(Denied):
    """What the switch lists speaks against the change: it would hit another connection. Nothing was changed."""


class Busy(Denied):
    """The switch asked to repeat the command later (RL) each time it was sent; nothing was done."""


class MalformedText(SwitchFault):
    """What arrived is not TL1."""


class NotTl1(MalformedText):
    """Text between messages that is no prompt, echo or acknowledgment."""


class Truncated(MalformedText):
    """A message without its terminator: the next one began inside it, or a part of it never came."""


class MessageTooLong(MalformedText):
    """A message larger than the receive limit."""


class MalformedAnswer(MalformedText):
    """A well-formed answer whose rows do not say what the dialect promises."""
