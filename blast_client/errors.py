"""What a client raises. The text of each is a sentence that says what is wrong, and what to do about it.

BlastError                                                                  (base_error.py)
    WrongArgument           what the caller gave cannot be sent; nothing was asked
    BadAddress, BadCredentials                                              (address.py, tls.py)
    ControllerUnreachable   no answer; ClientClosed, NoAnswerInTime, ...    (calls.py)
    Rejected, TimedOut, Ended, UnknownRequest, KeyReused, Denied, Unsupported, NotLeader, CallFailed
                            the controller's answer; each is what `blast_api` calls so, too
"""

from __future__ import annotations

from thrift.Thrift import TApplicationException, TException

from blast_api import ttypes
from blast_client.base_error import BlastError
from blast_client.states import PartState


class _Answer(BlastError):
    """An exception of the interface. The generated ones refuse even the attributes that Python itself sets on them."""

    __setattr__ = Exception.__setattr__
    __delattr__ = Exception.__delattr__


class Rejected(_Answer, ttypes.Rejected):
    """The request cannot be had, now or ever; `code` says why for programs, `sentence` for people."""

    def __str__(self) -> str:
        largest = self.maxRacks
        if largest is None or str(largest) in self.message:
            return str(self.message)
        return f"{self.message.rstrip('.')} (at most {largest} racks)"


class TimedOut(_Answer, ttypes.TimedOut):
    """Nothing happened within the time that the caller gave; the request goes on waiting."""

    def __str__(self) -> str:
        return f"not yet: {self.message}"


class Ended(_Answer, ttypes.Ended):
    """The request is over, in its final `state` and for its `reason`; nothing has been changed."""

    def __str__(self) -> str:
        return f"the request has ended ({self.state}): {self.reason or 'no reason given'}"


class UnknownRequest(_Answer, ttypes.UnknownRequest):
    """The controller knows no request with this key, or not any more, or it is another tenant's."""

    def __str__(self) -> str:
        return f"the controller knows no request {self.key!r}, or not any more: submit it anew"


class KeyReused(_Answer, ttypes.KeyReused):
    """The key is in use by a request with other content."""

    def __str__(self) -> str:
        return f"the key {self.key!r} is in use by a request with other content: choose another key"


class Denied(_Answer, ttypes.Denied):
    """The caller is not who may do this."""

    def __str__(self) -> str:
        return f"denied: {self.message}"


class Unsupported(_Answer, ttypes.Unsupported):
    """A feature or optional field that this controller does not serve."""

    def __str__(self) -> str:
        return f"this controller does not serve {self.feature}: {self.message}"


class NotLeader(_Answer, ttypes.NotLeader):
    """This controller stands by; `address`, where known, is that of the one that decides."""

    def __str__(self) -> str:
        return f"this controller is not the leader{f': ask {self.address}' if self.address else ''}"


class CallFailed(_Answer, TApplicationException):  # type: ignore[misc]
    """The controller understood the call and failed at it, or does not know it: its fault, not the caller's."""

    def __str__(self) -> str:
        return f"the controller could not carry out the call: {TApplicationException.__str__(self)}"


def as_answer(error: TException) -> TException:
    """An exception of the interface as the one of this module that stands for it."""
    match error:
        case _Answer():
            return error
        case ttypes.Rejected():
            return Rejected(error.code, error.message, error.maxRacks)
        case ttypes.TimedOut():
            return TimedOut(error.message)
        case ttypes.Ended():
            return Ended(PartState(error.state), error.reason)
        case ttypes.UnknownRequest():
            return UnknownRequest(error.key)
        case ttypes.KeyReused():
            return KeyReused(error.key)
        case ttypes.Denied():
            return Denied(error.message)
        case ttypes.Unsupported():
            return Unsupported(error.feature, error.message)
        case ttypes.NotLeader():
            return NotLeader(error.address)
        case TApplicationException():
            return CallFailed(error.type, error.message)
    return error


def refuse_ended(status: ttypes.RequestStatus, after_sequence: int) -> None:
    """Raise Ended where a request is over and no event comes after this one."""
    state = PartState(status.state)
    if state.final and status.latestSequence <= after_sequence:
        raise Ended(state, next((part.reason for part in status.parts if part.reason), ""))
