"""HTTP server of a model that switches to the newest version of its weights while it serves requests.

    python worker.py --model demo --folder /var/lib/blast-agent/incoming --listen 10.0.0.2:8080

POST /answer {"x": [numbers]} returns {"version": N, "y": [numbers]}: version N computed the whole answer. GET /version
returns {"serving": N, "here": M}, where M is the newest version that has arrived; 0: none. The model is an
nn.Sequential of Linear and ReLU, its weights a `state_dict`. All workers of a host map the same file, without a copy.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from versions import arrived, model_name, name_of, seconds

from blast_client import BlastError, NotReceivedError, receive

MAX_CONNECTIONS = 256
MAX_BYTES = 1 << 20
"""Maximum size of a request."""
IDLE_SECONDS = 60.0

_PATHS = "unknown path; use GET /version or POST /answer"

Numbers = NDArray[np.float32]
Request = socket.socket | tuple[bytes, socket.socket]
"""The type that `socketserver` declares; for TCP always the connection."""


class InvalidWeightsError(Exception):
    """Weights that do not form a model."""


class Model:
    """Immutable version of the model: a request that holds it computes with these weights only."""

    def __init__(self, version: int, tensors: Mapping[str, Numbers]) -> None:
        self.version = version
        try:
            numbers = sorted({int(name.partition(".")[0]) for name in tensors})
            self._layers = [(tensors[f"{number}.weight"], tensors[f"{number}.bias"]) for number in numbers]
            self.inputs: int = self._layers[0][0].shape[1]
            # Detect shapes that do not match before a request does, and read all mapped pages once.
            self.answer(np.zeros(self.inputs, np.float32))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise InvalidWeightsError(f"the tensors are not the layers of one model: {error}") from error

    def answer(self, x: Numbers) -> Numbers:
        """Return the result of the forward pass."""
        last = len(self._layers) - 1
        for number, (weight, bias) in enumerate(self._layers):
            x = weight @ x + bias
            if number < last:
                x = np.maximum(x, 0)
        return x


class Weights:
    """Versions in the agent's folder. `current` is replaced in one step, by a model that is ready to answer."""

    def __init__(self, folder: Path, model: str, keep: int) -> None:
        self._folder, self._model, self._keep = folder, model, keep
        self._invalid: set[int] = set()
        self.current: Model | None = None

    def newest(self) -> int:
        """Return the newest version that has arrived, or 0."""
        return max(arrived(self._folder, self._model), default=0)

    def update(self) -> None:
        """Switch to the newest version and delete old ones. Raise OSError if the folder is not readable."""
        here = arrived(self._folder, self._model)
        self._invalid &= here.keys()
        serving = self.current.version if self.current else 0
        for version in sorted(here.keys() - self._invalid, reverse=True):
            if version <= serving or self._serve(version):
                break
        self._remove(here)

    def _serve(self, version: int) -> bool:
        try:
            tensors = receive(name_of(self._model, version), self._folder, timeout=0, library="numpy")
            self.current = Model(version, tensors)
        except NotReceivedError:
            # Another worker of this host serves a newer version and has deleted this one.
            return False
        except (InvalidWeightsError, BlastError) as error:
            self._invalid.add(version)
            log(f"version {version} is not served: {error}; release valid weights under a higher number")
            return False
        log(f"version {version} is served")
        return True

    def _remove(self, here: Mapping[int, Path]) -> None:
        """Delete the files of old versions; their memory is freed after the last request that uses it, in any process.

        The newest invalid version stays, so that the publisher does not send it again.
        """
        serving = self.current.version if self.current else 0
        old = sorted(version for version in here.keys() - self._invalid if version <= serving)
        for version in [*old[: -self._keep], *sorted(self._invalid)[:-1]]:
            here[version].unlink(missing_ok=True)


class Server(ThreadingHTTPServer):
    """HTTP server with at most `MAX_CONNECTIONS` threads; further connections wait."""

    daemon_threads = True
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, address: tuple[str, int], weights: Weights) -> None:
        super().__init__(address, Handler)
        self.weights = weights
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request: Request, client_address: object) -> None:
        """Handle the connection in a thread, as soon as the limit permits one."""
        self._places.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Request, client_address: object) -> None:
        """Handle one connection and release its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Request, client_address: object) -> None:
        """Report errors except those of a client that has disconnected."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Handler of the requests of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def setup(self) -> None:
        """Disable Nagle's algorithm, which would delay the short responses."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def do_GET(self) -> None:
        """Return the version that is served and the newest one that has arrived."""
        if self.path != "/version":
            return self._respond(404, {"error": _PATHS})
        model = self.server.weights.current
        return self._respond(200, {"serving": model.version if model else 0, "here": self.server.weights.newest()})

    def do_POST(self) -> None:
        """Compute an answer."""
        # Read the reference once, so that one version answers the request even if another replaces it meanwhile.
        model = self.server.weights.current
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BYTES:
            self.close_connection = True
            return self._respond(413, {"error": f"Content-Length is missing or above {MAX_BYTES}; send a smaller body"})
        body = self.rfile.read(int(length))
        if self.path != "/answer":
            return self._respond(404, {"error": _PATHS})
        if model is None:
            return self._respond(503, {"error": "no version has arrived yet; retry later"})
        try:
            x = np.asarray(json.loads(body)["x"], np.float32)
            if x.shape != (model.inputs,):
                raise ValueError(f"x has the shape {x.shape}")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return self._respond(400, {"error": f'invalid request: {error}; send {{"x": [{model.inputs} numbers]}}'})
        return self._respond(200, {"version": model.version, "y": model.answer(x).tolist()})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log no requests."""

    def _respond(self, status: int, content: Mapping[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C, and return the exit status."""
    options = _parser().parse_args(arguments)
    weights, ended = Weights(options.folder, options.model, options.keep), threading.Event()
    try:
        weights.update()
        server = Server(options.listen, weights)
    except (OSError, BlastError) as error:
        host, port = options.listen
        log(f"cannot serve from {options.folder} at {host}:{port}: {error}; check --folder and --listen")
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(json.dumps({"event": "ready", "port": server.server_address[1]}), flush=True)
        while not ended.wait(options.look):
            try:
                weights.update()
            except OSError as error:
                log(f"cannot read {options.folder}: {error}; the current version is still served; check the folder")
        server.shutdown()
    return 0


def log(message: str) -> None:
    """Print a message to standard error."""
    sys.stderr.write(f"worker: {message}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=model_name, help="name of the model, as at the publisher")
    parser.add_argument("--folder", required=True, type=Path, help="folder of this host's agent")
    parser.add_argument(
        "--listen",
        type=_address,
        default=("127.0.0.1", 8080),
        metavar="ADDRESS:PORT",
        help="HTTP address (default: 127.0.0.1:8080)",
    )
    parser.add_argument("--keep", type=_count, default=2, help="number of versions kept on disk (default: 2)")
    parser.add_argument(
        "--look",
        type=seconds,
        default=0.5,
        metavar="SECONDS",
        help="interval of checks for a new version (default: 0.5)",
    )
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not ADDRESS:PORT")
    return host, int(port)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
