"""Exceptions of the clients. The text of each states the failure, its reason and the next step.

BlastError                                                                  (base_error.py)
    InvalidArgumentError           an argument cannot be sent; no call was made
    AddressError, CredentialsError                                              (address.py, tls.py)
    ControllerUnreachableError   no answer; ClientClosedError, AnswerTimeoutError, ...    (calls.py)
    Rejected, TimedOut, Ended, UnknownRequest, KeyReused, Denied, Unsupported, NotLeader, CallFailedError
                            the controller's answer; each also inherits the class of this name in `blast_api`
"""

from __future__ import annotations

from thrift.Thrift import TApplicationException, TException

from blast_api import ttypes
from blast_client.api.base_error import BlastError
from blast_client.api.states import PartState


class _AnswerError(BlastError):
    """An exception of the interface, with the attributes that Python sets and the generated classes forbid."""

    __setattr__ = Exception.__setattr__
    __delattr__ = Exception.__delattr__


class Rejected(_AnswerError, ttypes.Rejected):  # noqa: N818 - Thrift's name
    """The controller rejects a request or call.

    Parameters
    ----------
    code : str
        Reason for programs, for example "unknown_host".
    message : str
        Reason for people.
    maxRacks : int | None
        Maximum number of racks, including the sender's, if the group is too wide; None otherwise.
    """

    def __str__(self) -> str:
        largest = self.maxRacks
        if largest is None or str(largest) in self.message:
            return str(self.message)
        return f"{self.message.rstrip('.')} (at most {largest} racks)"


class TimedOut(_AnswerError, ttypes.TimedOut):  # noqa: N818 - Thrift's name
    """The event did not occur within the caller's timeout; the request stays pending.

    Parameters
    ----------
    message : str
        Reason for people.
    """

    def __str__(self) -> str:
        return f"not yet: {self.message}"


class Ended(_AnswerError, ttypes.Ended):  # noqa: N818 - Thrift's name
    """The request has ended; the call changed nothing.

    Parameters
    ----------
    state : PartState
        Final state of the request.
    reason : str
        Reason of the end, or empty.
    """

    def __str__(self) -> str:
        return f"the request has ended ({self.state}): {self.reason or 'no reason given'}"


class UnknownRequest(_AnswerError, ttypes.UnknownRequest):  # noqa: N818 - Thrift's name
    """The controller has no request with this key for this tenant; it forgets ended requests after some time.

    Parameters
    ----------
    key : str
        Key of the call.
    """

    def __str__(self) -> str:
        return f"the controller knows no request {self.key!r}: submit it again"


class KeyReused(_AnswerError, ttypes.KeyReused):  # noqa: N818 - Thrift's name
    """The key is in use by a request with other content.

    Parameters
    ----------
    key : str
        Key of the call.
    """

    def __str__(self) -> str:
        return f"the key {self.key!r} is in use by a request with other content: choose another key"


class Denied(_AnswerError, ttypes.Denied):  # noqa: N818 - Thrift's name
    """The caller lacks the permission.

    Parameters
    ----------
    message : str
        Reason for people.
    """

    def __str__(self) -> str:
        return f"denied: {self.message}"


class Unsupported(_AnswerError, ttypes.Unsupported):  # noqa: N818 - Thrift's name
    """A feature or optional field that this controller does not serve.

    Parameters
    ----------
    feature : str
        Name of the feature or field.
    message : str
        Reason for people.
    """

    def __str__(self) -> str:
        return f"this controller does not serve {self.feature}: {self.message}"


class NotLeader(_AnswerError, ttypes.NotLeader):  # noqa: N818 - Thrift's name
    """The controller is a standby.

    Parameters
    ----------
    address : str | None
        Address of the leader, or None if it is unknown.
    """

    def __str__(self) -> str:
        return f"this controller is a standby{f': use {self.address}' if self.address else ''}"


class CallFailedError(_AnswerError, TApplicationException):  # type: ignore[misc]
    """The controller failed to execute the call, or does not know the method.

    Parameters
    ----------
    type : int
        Code of Thrift's `TApplicationException`.
    message : str | None
        Cause that the controller reported.
    """

    def __str__(self) -> str:
        return f"the controller failed to execute the call: {TApplicationException.__str__(self)}"


def as_answer(error: TException) -> TException:
    """Return the exception of this module for an exception of the interface."""
    match error:
        case _AnswerError():
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
            return CallFailedError(error.type, error.message)
    return error


def refuse_ended(status: ttypes.RequestStatus, after_sequence: int) -> None:
    """Raise Ended if a request has ended and has no event above `after_sequence`."""
    state = PartState(status.state)
    if state.final and status.latestSequence <= after_sequence:
        raise Ended(state, next((part.reason for part in status.parts if part.reason), ""))
