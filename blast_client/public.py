"""Public names of `blast_client`: clients of the controller, their results and their exceptions."""

from blast_client.thrift_guard import require_thrift

require_thrift()

from blast_api.ttypes import (  # noqa: E402 - the guard must precede imports of Thrift
    Event,
    Extension,
    Grant,
    MulticastRequest,
    RequestFilter,
    RequestStatus,
    TransferReport,
)
from blast_client.address import AddressError  # noqa: E402
from blast_client.agent_credentials import agent_certificates, agent_secret  # noqa: E402
from blast_client.aio import AsyncClient  # noqa: E402
from blast_client.base_error import BlastError, InvalidArgumentError  # noqa: E402
from blast_client.broadcasting import (  # noqa: E402
    DeliveryError,
    Outcome,
    SendError,
    async_broadcast,
    broadcast,
    settings_of_environment,
)
from blast_client.calls import ClientClosedError, ControllerUnreachableError  # noqa: E402
from blast_client.client import Client  # noqa: E402
from blast_client.errors import (  # noqa: E402
    CallFailedError,
    Denied,
    Ended,
    KeyReused,
    NotLeader,
    Rejected,
    TimedOut,
    UnknownRequest,
    Unsupported,
)
from blast_client.objects.not_readable import UnreadableObjectError  # noqa: E402
from blast_client.objects.receiving import MissingLibraryError, NotReceivedError, async_receive, receive  # noqa: E402
from blast_client.round import RoundSettings  # noqa: E402
from blast_client.states import EventKind, PartState  # noqa: E402
from blast_client.tls import CredentialsError, TlsSettings  # noqa: E402

__all__ = [
    "AddressError",
    "AsyncClient",
    "BlastError",
    "CallFailedError",
    "Client",
    "ClientClosedError",
    "ControllerUnreachableError",
    "CredentialsError",
    "DeliveryError",
    "Denied",
    "Ended",
    "Event",
    "EventKind",
    "Extension",
    "Grant",
    "InvalidArgumentError",
    "KeyReused",
    "MissingLibraryError",
    "MulticastRequest",
    "NotLeader",
    "NotReceivedError",
    "Outcome",
    "PartState",
    "Rejected",
    "RequestFilter",
    "RequestStatus",
    "RoundSettings",
    "SendError",
    "TimedOut",
    "TlsSettings",
    "TransferReport",
    "UnknownRequest",
    "UnreadableObjectError",
    "Unsupported",
    "agent_certificates",
    "agent_secret",
    "async_broadcast",
    "async_receive",
    "broadcast",
    "receive",
    "settings_of_environment",
]
