"""What a failed call means for somebody at a terminal: one sentence and an exit status."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from functools import wraps

from thrift.Thrift import TApplicationException, TException

from blast_api.ttypes import Denied, Ended, KeyReused, NotLeader, Rejected, TimedOut, UnknownRequest, Unsupported
from blast_client.address import BadAddress
from blast_client.base_error import BlastError, WrongArgument
from blast_client.calls import ClientClosed, ControllerUnreachable, NoAnswerInTime, TlsFailed
from blast_client.errors import as_answer
from blast_client.json_errors import ErrorLines
from blast_client.tls import BadCredentials
from blast_transport.base.errors import EngineError, LocalProtocolError, SettingsError, TransportError, WrongInputError

DONE, FAILED, WRONG_USE, PARTLY = 0, 1, 2, 3
"""Exit statuses of every `blast` command."""


_NOT_NOW = frozenset(
    {
        "device_disconnected",
        "device_failed",
        "light_lost",
        "no_port",
        "no_free_output",
        "no_resources",
        "busy",
        "draining",
        "safe_mode",
        "too_many_requests",
        "too_many_pending",
        "too_many_waiting",
        "too_many_calls",
    }
)
"""Codes of refusals that are no mistake of the caller's: the same call may succeed at another time."""


def explain_failure(error: Exception) -> tuple[int, str]:
    """The exit status and the sentence for an exception of a client call."""
    match error:
        case Rejected():
            return FAILED if error.code in _NOT_NOW else WRONG_USE, str(as_answer(error))
        case UnknownRequest():
            return WRONG_USE, f"the controller knows no request {error.key!r}: `blast status` lists those it knows"
        case KeyReused():
            return WRONG_USE, f"the key {error.key!r} is in use by a request with other content: choose another --key"
        case Denied() | Unsupported():
            return WRONG_USE, str(as_answer(error))
        case NotLeader():
            other = f": try --controller {error.address}" if error.address else ""
            return FAILED, f"this controller is not the leader{other}"
        case TimedOut() | Ended() | TApplicationException():
            return FAILED, str(as_answer(error))
        case TlsFailed() | NoAnswerInTime() | ClientClosed():
            return FAILED, str(error)
        case ControllerUnreachable():
            return FAILED, f"{error} with --controller"
        case BadAddress() | BadCredentials() | WrongArgument() | WrongInputError() | SettingsError():
            return WRONG_USE, str(error)
    return FAILED, str(error)


def telling_failures(run: Callable[[Namespace], int]) -> Callable[[Namespace], int]:
    """Turn what client calls raise into a sentence on standard error and an exit status."""

    @wraps(run)
    def wrapped(arguments: Namespace) -> int:
        try:
            return run(arguments)
        except (EngineError, LocalProtocolError):
            # Faults of the program: a traceback is what its developers need.
            raise
        except (TException, BlastError, TransportError) as error:
            status, sentence = explain_failure(error)
            if isinstance(sys.stderr, ErrorLines):
                sys.stderr.code = error.code if isinstance(error, Rejected) else None
            notes = getattr(error, "__notes__", ())
            sys.stderr.write(f"blast: {'; '.join([sentence.rstrip('.') if notes else sentence, *notes])}\n")
            return status

    return wrapped
