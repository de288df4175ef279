"""Public names of `blast_client`: clients of the controller, their results and their exceptions."""

from blast_client.api.thrift_guard import require_thrift

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
from blast_client.api.address import AddressError  # noqa: E402
from blast_client.api.agent_credentials import agent_certificates, agent_secret  # noqa: E402
from blast_client.api.aio import AsyncClient  # noqa: E402
from blast_client.api.base_error import BlastError, InvalidArgumentError  # noqa: E402
from blast_client.api.calls import ClientClosedError, ControllerUnreachableError  # noqa: E402
from blast_client.api.client import Client  # noqa: E402
from blast_client.api.errors import (  # noqa: E402
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
from blast_client.api.states import EventKind, PartState  # noqa: E402
from blast_client.api.tls import CredentialsError, TlsSettings  # noqa: E402
from blast_client.objects.not_readable import UnreadableObjectError  # noqa: E402
from blast_client.objects.receiving import MissingLibraryError, NotReceivedError, async_receive, receive  # noqa: E402
from blast_client.send.broadcasting import (  # noqa: E402
    DeliveryError,
    Outcome,
    SendError,
    async_broadcast,
    broadcast,
    settings_of_environment,
)
from blast_client.send.round import RoundSettings  # noqa: E402

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
