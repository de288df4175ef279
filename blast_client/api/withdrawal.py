"""Withdrawal of requests whose caller no longer needs them: the parts that both clients share.

A request outlives the call that submitted it. If Ctrl-C, a cancelled task or an exception ends that call, the
controller could grant the request later although no program uses the grant. The clients therefore withdraw it within
`TIMEOUT_S`. If that fails, the exception gets a note and the log a warning.
"""

from __future__ import annotations

import logging

from blast_api.ttypes import MulticastRequest, RequestStatus
from blast_client.api.base_error import BlastError, InvalidArgumentError
from blast_client.api.errors import Denied, Ended, KeyReused, NotLeader, Rejected, Unsupported

TIMEOUT_S = 3.0
"""Limit of a withdrawal; after it the request ends with its lease or its pending timeout."""

NOT_SUBMITTED = (Rejected, KeyReused, Unsupported, Denied, NotLeader, Ended, InvalidArgumentError)
"""Exceptions after which the caller has no request to withdraw."""

_log = logging.getLogger(__name__)


def name_of(request: MulticastRequest) -> str:
    """Return the name that identifies a request in later calls: its key, after its tenant where it has one."""
    return f"{request.tenant}/{request.key}" if request.tenant else str(request.key)


def is_same(status: RequestStatus, request: MulticastRequest) -> bool:
    """Return True if a status describes the caller's request, not another request with the same key."""
    return bool(
        status.sender == request.sender
        and status.bytes == request.bytes
        and set(status.receivers) == set(request.receivers)
    )


def report_failure(request: MulticastRequest, error: BaseException, failure: BlastError) -> None:
    """Log that a withdrawal failed, and add that as a note to the exception that caused the withdrawal."""
    name = name_of(request)
    sentence = (
        f"request {name} could not be withdrawn and may hold optical resources until its lease expires; "
        f"run `blast withdraw {name}`: {failure}"
    )
    error.add_note(sentence)
    _log.warning("%s", sentence)
