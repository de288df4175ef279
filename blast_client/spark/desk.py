"""Where executors ask in the driver for a value that they do not find: it is sent to their agent, or handed to them.

`GET /NAME`, of whoever shows the application's token:

| answer | means |
|---|---|
| 204 | look in the agent's folder again: a round has been made since |
| 202 | it is on its way: ask again |
| 200 | here it is, as the file that the agent would have had; `Blast-Digest` is the BLAKE2b of it |
| 410 | there is no such value any more |

`Blast-Want` is `copy` first; `another` when there is none after all, which sends it again to whoever asks from the
address of an agent; and then `bytes`, which costs the driver one more copy.
"""

from __future__ import annotations

import hashlib
import hmac
import http.server
import logging
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from http import HTTPStatus

from blast_client.spark.asking import DIGEST, TOKEN, WANT, Want
from blast_client.spark.copies import Brought, Copies
from blast_client.spark.reasons import Reason, tell

_LOG = logging.getLogger("blast_client.spark")

MAX_AT_ONCE = 64
_SILENCE_SECONDS = 30.0
"""A connection on which nothing moves for so long is closed."""
_HELD_SECONDS = 10.0
"""So long an answer waits for a round; then the executor asks again."""


class Desk:
    """Answers for values by their names until it is closed. Raises OSError where it cannot listen."""

    def __init__(self, address: str, port: int, copies_of: Callable[[str], Copies | None]) -> None:
        self.token = secrets.token_hex(32)
        self._server = _Server((address, port), self.token, copies_of)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="blast-spark-desk", daemon=True).start()

    def close(self) -> None:
        """Answer nobody any more. Whoever is being answered is not waited for."""
        threading.Thread(target=self._close, daemon=True).start()

    def _close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


_Request = socket.socket | tuple[bytes, socket.socket]
"""As `socketserver` knows it."""


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], token: str, copies_of: Callable[[str], Copies | None]) -> None:
        self.token, self.copies_of = token, copies_of
        self._places = threading.BoundedSemaphore(MAX_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer would look its own name up, which may take seconds where there is no name server.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: _Request, client_address: object) -> None:
        # Whoever comes beyond that waits in the queue of connections.
        self._places.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: _Request, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: _Request, client_address: object) -> None:
        """Whoever broke off asks again."""
        _LOG.debug("an answer to %s was not finished", client_address, exc_info=True)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _SILENCE_SECONDS

    def do_GET(self) -> None:
        if not hmac.compare_digest(self.headers.get(TOKEN, "").encode(), self.server.token.encode()):
            self._say(HTTPStatus.FORBIDDEN)
            return
        copies = self.server.copies_of(self.path.removeprefix("/"))
        if copies is None:
            self._say(HTTPStatus.GONE)
        elif self.headers.get(WANT) == Want.BYTES:
            self._hand_over(copies)
        else:
            self._bring(copies, another=self.headers.get(WANT) == Want.ANOTHER)

    def _bring(self, copies: Copies, *, another: bool) -> None:
        if another:
            copies.lost_at(str(self.client_address[0]))
        coming: Future[Brought] = copies.bring()
        try:
            # Whatever a round came to: who finds nothing after it will want the bytes.
            coming.exception(_HELD_SECONDS)
        except NotInTime:
            self._say(HTTPStatus.ACCEPTED)
        else:
            self._say(HTTPStatus.NO_CONTENT)

    def _hand_over(self, copies: Copies) -> None:
        tell(Reason.FETCHED, f"{copies.name}: the executor at {self.client_address[0]} takes it from the driver")
        digest = hashlib.blake2b()
        for piece in copies.parcel.pieces():
            digest.update(piece)
        self._say(HTTPStatus.OK, copies.parcel.size, digest.hexdigest())
        for piece in copies.parcel.pieces():
            self.wfile.write(piece)

    def _say(self, status: HTTPStatus, size: int = 0, digest: str = "") -> None:
        self.send_response(status)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(size))
        if digest:
            self.send_header(DIGEST, digest)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name is http.server's
        """Nothing: what is worth a line has one."""
