"""A node of a chain that fetches from its source, which is no agent: how the two prove who they are.

The node connects, for only it knows that it has to. The roles stay those of every connection between the two all the
same: the node is the agent, with the certificate that names it, and lets the source in as a sender; the source proves
itself as a sender does, and wants one of the chain's nodes before it. So nothing has to be configured for this, and
whoever may only hand on data cannot pass for the source.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Collection

from blast_transport.base.endpoint import Endpoint
from blast_transport.base.errors import AuthenticationError
from blast_transport.credentials.admission import Admission, Connection, dialer, prove_to_one_of
from blast_transport.credentials.material import Credentials
from blast_transport.credentials.roles import SENDER
from blast_transport.links.dialling import SOURCE, Address, Dialer

_SECONDS = 5.0


class SourceAdmission:
    """The source's side: `nodes` may come in. Thread-safe."""

    def __init__(self, credentials: Credentials, nodes: Collection[str]) -> None:
        self._credentials, self._nodes = credentials, frozenset(nodes)

    def admit(self, sock: socket.socket, address: str) -> Connection:
        """Let in whoever is at the other end. Raises AuthenticationError, SettingsError; `sock` is then closed."""
        return Connection(prove_to_one_of(sock, self._credentials, self._nodes, _SECONDS), address)


def node_dialer(credentials: Credentials, admission: Admission) -> Dialer:
    """How an agent connects to others, as `dialer`, and to the source of a chain, whom `admission` must know."""
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
            raise AuthenticationError(f"{source.peer} may hand on data here, but is no sender")
        return source.sock

    return dial
