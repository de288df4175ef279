"""The HTTP server of the driver for executors that do not find a value on their host.

It answers `GET /NAME` with the application's token:

| status | meaning |
|---|---|
| 204 | a round has ended: look in the agent's folder again |
| 202 | a round is running: ask again |
| 200 | the file that the agent would have; `Blast-Digest` is its BLAKE2b digest |
| 410 | the value was destroyed |

An executor sends `Blast-Request: copy` first. If it still finds no copy, it sends `another`, after which the driver
sends the value to that host again; and then `bytes`, which the driver answers with the file.
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

from blast_client.spark.asking import DIGEST, KIND, TOKEN, CopyKind
from blast_client.spark.copies import Copies, CopyRoundResult
from blast_client.spark.reasons import Reason, log_reason

_LOG = logging.getLogger("blast_client.spark")

MAX_AT_ONCE = 64
_SILENCE_SECONDS = 30.0
"""Time after which an idle connection is closed."""
_HELD_SECONDS = 10.0
"""Maximum time that an answer waits for a round; then the executor asks again."""


class CopyServer:
    """A server of values by name. Raises OSError if it cannot listen."""

    def __init__(self, address: str, port: int, copies_of: Callable[[str], Copies | None]) -> None:
        self.token = secrets.token_hex(32)
        self._server = _Server((address, port), self.token, copies_of)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="blast-spark-server", daemon=True).start()

    def close(self) -> None:
        """Stop the server without waiting for running answers."""
        threading.Thread(target=self._close, daemon=True).start()

    def _close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


_Request = socket.socket | tuple[bytes, socket.socket]
"""A request in `socketserver`."""


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], token: str, copies_of: Callable[[str], Copies | None]) -> None:
        self.token, self.copies_of = token, copies_of
        self._places = threading.BoundedSemaphore(MAX_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _CopyHandler)

    def server_bind(self) -> None:
        # HTTPServer would resolve its own name, which may take seconds without a name server.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: _Request, client_address: object) -> None:
        # Further connections wait in the accept queue.
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
        """Log a failed answer; the executor asks again."""
        _LOG.debug("the answer to %s failed", client_address, exc_info=True)


class _CopyHandler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = _SILENCE_SECONDS

    def do_GET(self) -> None:
        if not hmac.compare_digest(self.headers.get(TOKEN, "").encode(), self.server.token.encode()):
            self._answer(HTTPStatus.FORBIDDEN)
            return
        copies = self.server.copies_of(self.path.removeprefix("/"))
        if copies is None:
            self._answer(HTTPStatus.GONE)
        elif self.headers.get(KIND) == CopyKind.BYTES:
            self._send_file(copies)
        else:
            self._bring(copies, another=self.headers.get(KIND) == CopyKind.ANOTHER)

    def _bring(self, copies: Copies, *, another: bool) -> None:
        if another:
            copies.lost_at(str(self.client_address[0]))
        coming: Future[CopyRoundResult] = copies.bring()
        try:
            # The outcome does not matter: an executor that finds no copy requests the bytes.
            coming.exception(_HELD_SECONDS)
        except NotInTime:
            self._answer(HTTPStatus.ACCEPTED)
        else:
            self._answer(HTTPStatus.NO_CONTENT)

    def _send_file(self, copies: Copies) -> None:
        log_reason(
            Reason.FETCHED,
            f"{copies.name}: the executor at {self.client_address[0]} fetches it from the driver",
        )
        digest = hashlib.blake2b()
        for piece in copies.parcel.pieces():
            digest.update(piece)
        self._answer(HTTPStatus.OK, copies.parcel.size, digest.hexdigest())
        for piece in copies.parcel.pieces():
            self.wfile.write(piece)

    def _answer(self, status: HTTPStatus, size: int = 0, digest: str = "") -> None:
        self.send_response(status)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(size))
        if digest:
            self.send_header(DIGEST, digest)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name is http.server's
        """Log nothing; `log_reason` logs relevant events."""
