"""Error messages of commands, and the exit status of each error."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from functools import wraps

from thrift.Thrift import TException

from blast_base.command_line import FAILED, WRONG_INPUT
from blast_client.api.base_error import BlastError, InvalidArgumentError
from blast_client.cli.json_errors import ErrorLines
from blast_transport.base.errors import EngineError, LocalProtocolError, SettingsError, TransportError, WrongInputError

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
"""Codes of rejections that are not wrong use: the same call may succeed later."""


def explain_failure(error: Exception) -> tuple[int, str]:
    """Return the exit status and the message for an exception of a client call."""
    # Loading the interface of the controller takes longer than most commands that do not need it.
    from thrift.Thrift import TApplicationException

    from blast_api.ttypes import Denied, Ended, KeyReused, NotLeader, Rejected, TimedOut, UnknownRequest, Unsupported
    from blast_client.api.address import AddressError
    from blast_client.api.calls import AnswerTimeoutError, ClientClosedError, ControllerUnreachableError, TlsError
    from blast_client.api.errors import as_answer
    from blast_client.api.tls import CredentialsError

    match error:
        case Rejected():
            return FAILED if error.code in _NOT_NOW else WRONG_INPUT, str(as_answer(error))
        case UnknownRequest():
            return WRONG_INPUT, f"the controller knows no request {error.key!r}: `blast status --all` lists requests"
        case KeyReused():
            return WRONG_INPUT, f"the key {error.key!r} is in use by a request with other content: choose another --key"
        case Denied() | Unsupported():
            return WRONG_INPUT, str(as_answer(error))
        case NotLeader():
            other = f": try --controller {error.address}" if error.address else ""
            return FAILED, f"this controller is a standby{other}"
        case TimedOut() | Ended() | TApplicationException():
            return FAILED, str(as_answer(error))
        case TlsError() | AnswerTimeoutError() | ClientClosedError():
            return FAILED, str(error)
        case ControllerUnreachableError():
            return FAILED, f"{error} with --controller"
        case AddressError() | CredentialsError() | InvalidArgumentError() | WrongInputError() | SettingsError():
            return WRONG_INPUT, str(error)
    return FAILED, str(error)


def report_failures(run: Callable[[Namespace], int]) -> Callable[[Namespace], int]:
    """Print exceptions of client calls as messages on standard error, and return their exit status."""

    @wraps(run)
    def wrapped(arguments: Namespace) -> int:
        try:
            return run(arguments)
        except (EngineError, LocalProtocolError):
            # Bugs: their traceback is useful.
            raise
        except (TException, BlastError, TransportError) as error:
            status, sentence = explain_failure(error)
            if isinstance(sys.stderr, ErrorLines):
                sys.stderr.code = getattr(error, "code", None)
            notes = getattr(error, "__notes__", ())
            sys.stderr.write(f"blast: {'; '.join([sentence.rstrip('.') if notes else sentence, *notes])}\n")
            return status

    return wrapped
