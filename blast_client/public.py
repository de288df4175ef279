"""The names of `blast_client`: clients of the controller, what they give back, and what they raise."""

from blast_client.thrift_guard import require_thrift

require_thrift()

from blast_api.ttypes import (  # noqa: E402 - nothing of Thrift can be imported before the guard
    Event,
    Extension,
    Grant,
    MulticastRequest,
    RequestFilter,
    RequestStatus,
    TransferReport,
)
from blast_client.address import BadAddress  # noqa: E402
from blast_client.agent_credentials import agent_certificates, agent_secret  # noqa: E402
from blast_client.aio import AsyncClient  # noqa: E402
from blast_client.base_error import BlastError, WrongArgument  # noqa: E402
from blast_client.broadcasting import (  # noqa: E402
    NotDelivered,
    NotSent,
    Outcome,
    async_broadcast,
    broadcast,
    settings_of_environment,
)
from blast_client.calls import ClientClosed, ControllerUnreachable  # noqa: E402
from blast_client.client import Client  # noqa: E402
from blast_client.errors import (  # noqa: E402
    CallFailed,
    Denied,
    Ended,
    KeyReused,
    NotLeader,
    Rejected,
    TimedOut,
    UnknownRequest,
    Unsupported,
)
from blast_client.objects.not_readable import NotReadable  # noqa: E402
from blast_client.objects.receiving import LibraryMissing, NotHere, async_receive, receive  # noqa: E402
from blast_client.round import RoundSettings  # noqa: E402
from blast_client.states import EventKind, PartState  # noqa: E402
from blast_client.tls import BadCredentials, TlsSettings  # noqa: E402

__all__ = [
    "AsyncClient",
    "BadAddress",
    "BadCredentials",
    "BlastError",
    "CallFailed",
    "Client",
    "ClientClosed",
    "ControllerUnreachable",
    "Denied",
    "Ended",
    "Event",
    "EventKind",
    "Extension",
    "Grant",
    "KeyReused",
    "LibraryMissing",
    "MulticastRequest",
    "NotDelivered",
    "NotHere",
    "NotLeader",
    "NotReadable",
    "NotSent",
    "Outcome",
    "PartState",
    "Rejected",
    "RequestFilter",
    "RequestStatus",
    "RoundSettings",
    "TimedOut",
    "TlsSettings",
    "TransferReport",
    "UnknownRequest",
    "Unsupported",
    "WrongArgument",
    "agent_certificates",
    "agent_secret",
    "async_broadcast",
    "async_receive",
    "broadcast",
    "receive",
    "settings_of_environment",
]
