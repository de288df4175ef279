"""Where the nodes of a chain reach its source, to fetch what their neighbours do not hold any more."""

from __future__ import annotations

import hmac
import socket
import threading
from contextlib import suppress

from blast_transport.agent.chain_source import SourceAdmission
from blast_transport.agent.first_message import read_first
from blast_transport.errors import TransportError
from blast_transport.pipeline import Join, PipelineLeg, PipelineSource

_PATIENCE_SECONDS = 5.0


class Reception:
    """Accepts connections at `listener`, which it owns, in a thread of its own, until `close`."""

    def __init__(
        self, listener: socket.socket, admission: SourceAdmission, leg: PipelineLeg, source: PipelineSource
    ) -> None:
        self._listener, self._admission, self._leg, self._source = listener, admission, leg, source
        threading.Thread(target=self._run, name="reception", daemon=True).start()

    def close(self) -> None:
        """Accept no more."""
        # Closing alone would not end an accept that waits.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                sock, address = self._listener.accept()
            except OSError:
                return
            arguments = (sock, f"{address[0]}:{address[1]}")
            threading.Thread(target=self._admit, args=arguments, name="reception", daemon=True).start()

    def _admit(self, sock: socket.socket, address: str) -> None:
        try:
            sock.settimeout(_PATIENCE_SECONDS)
            sock = self._admission.admit(sock, address).sock
            join = read_first(sock, _PATIENCE_SECONDS, _PATIENCE_SECONDS)
        except (OSError, TransportError):
            sock.close()
            return
        leg = self._leg
        if (
            isinstance(join, Join)
            and (join.session, join.leg) == (leg.session, leg.number)
            and hmac.compare_digest(join.token, leg.token)
        ):
            self._source.accept(sock, join.name)
        else:
            sock.close()
