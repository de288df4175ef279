"""Authentication between a node of a chain and the source, which is not an agent.

The node connects to fetch data, because only the node knows when it has to. The roles stay those of other connections:
the node is the agent, with the certificate that names it, and admits the source as a sender; the source authenticates
as a sender, and requires one of the chain's nodes at the other end. Thus no further configuration is needed, and a
neighbor cannot impersonate the source.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Collection

from blast_base.endpoint import Endpoint
from blast_transport.base.errors import AuthenticationError
from blast_transport.credentials.admission import Admission, AgentConnection, dialer, prove_to_one_of
from blast_transport.credentials.material import Credentials
from blast_transport.credentials.roles import SENDER
from blast_transport.links.dialling import SOURCE, Address, Dialer

_SECONDS = 5.0
"""For the proofs of both ends, after the connection is open."""


class SourceAdmission:
    """The source's side: `nodes` may come in. Thread-safe."""

    def __init__(self, credentials: Credentials, nodes: Collection[str]) -> None:
        self._credentials, self._nodes = credentials, frozenset(nodes)

    def admit(self, sock: socket.socket, address: str) -> AgentConnection:
        """Authenticate the connecting node. Raise AuthenticationError, SettingsError; `sock` is then closed."""
        return AgentConnection(prove_to_one_of(sock, self._credentials, self._nodes, _SECONDS), address)


def node_dialer(credentials: Credentials, admission: Admission) -> Dialer:
    """Return a dialer that connects an agent to others, and to the source of a chain, which `admission` must accept."""
    to_agent = dialer(credentials)

    def dial(address: Address, seconds: float) -> socket.socket:
        name, host, port = address
        if name != SOURCE:
            return to_agent(address, seconds)
        give_up = time.monotonic() + seconds
        sock = socket.create_connection((host, port), seconds)
        try:
            source = admission.admit(sock, str(Endpoint(host, port)), give_up - time.monotonic())
        except AuthenticationError:
            sock.close()
            raise
        if source.role != SENDER:
            source.close()
            raise AuthenticationError(f"{source.peer} may forward data here, but may not send")
        return source.sock

    return dial
