"""Serves answers of a model over HTTP, and goes over to the newest version of its weights while requests flow.

    python worker.py --model demo --folder /var/lib/blast-agent/incoming --listen 10.0.0.2:8080

POST /answer {"x": [numbers]} gives {"version": N, "y": [numbers]}: the whole answer is of version N. GET /version gives
{"serving": N, "here": M}, M the newest that has arrived; 0 is none. The model is an nn.Sequential of Linear and ReLU,
its weights a `state_dict`. Nothing is copied: all workers of a host map the same file.
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

from blast_client import BlastError, NotHere, receive

MAX_CONNECTIONS = 256
MAX_BYTES = 1 << 20
"""Of a request."""
IDLE_SECONDS = 60.0

Numbers = NDArray[np.float32]
Request = socket.socket | tuple[bytes, socket.socket]
"""As `socketserver` has it: of TCP the connection alone."""


class Unfit(Exception):
    """Weights that are no model. One sentence."""


class Model:
    """One version, never changed once it is made: whoever holds it computes with these weights and no others."""

    def __init__(self, version: int, tensors: Mapping[str, Numbers]) -> None:
        self.version = version
        try:
            numbers = sorted({int(name.partition(".")[0]) for name in tensors})
            self._layers = [(tensors[f"{number}.weight"], tensors[f"{number}.bias"]) for number in numbers]
            self.inputs: int = self._layers[0][0].shape[1]
            # What does not fit together is found now, not by a request; and all of it has been read once.
            self.answer(np.zeros(self.inputs, np.float32))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise Unfit(f"the tensors are no layers of one model: {error}") from error

    def answer(self, x: Numbers) -> Numbers:
        """The forward pass."""
        last = len(self._layers) - 1
        for number, (weight, bias) in enumerate(self._layers):
            x = weight @ x + bias
            if number < last:
                x = np.maximum(x, 0)
        return x


class Weights:
    """The versions in the agent's folder. `current` is replaced in one step, by a model that is ready to answer."""

    def __init__(self, folder: Path, model: str, keep: int) -> None:
        self._folder, self._model, self._keep = folder, model, keep
        self._unfit: set[int] = set()
        self.current: Model | None = None

    def here(self) -> int:
        """The newest that has arrived; 0: none has."""
        return max(arrived(self._folder, self._model), default=0)

    def look(self) -> None:
        """Go over to the newest, and remove what is too old. Raises OSError, and BlastError if nothing can be read."""
        here = arrived(self._folder, self._model)
        self._unfit &= here.keys()
        serving = self.current.version if self.current else 0
        for version in sorted(here.keys() - self._unfit, reverse=True):
            if version <= serving or self._serve(version):
                break
        self._remove(here)

    def _serve(self, version: int) -> bool:
        try:
            tensors = receive(name_of(self._model, version), self._folder, timeout=0, library="numpy")
            self.current = Model(version, tensors)
        except NotHere:
            # Another worker of this host is ahead of us, and has removed it.
            return False
        except (Unfit, BlastError) as error:
            self._unfit.add(version)
            tell(f"version {version} is not served: {error}")
            return False
        tell(f"version {version} is served")
        return True

    def _remove(self, here: Mapping[int, Path]) -> None:
        """The name goes; the memory goes when the last request that uses it is answered, in whichever process.

        Of the unfit, the newest stays, so that nobody thinks it has not come.
        """
        serving = self.current.version if self.current else 0
        old = sorted(version for version in here.keys() - self._unfit if version <= serving)
        for version in [*old[: -self._keep], *sorted(self._unfit)[:-1]]:
            here[version].unlink(missing_ok=True)


class Server(ThreadingHTTPServer):
    """Answers `MAX_CONNECTIONS` at once, and lets the others wait."""

    daemon_threads = True
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, address: tuple[str, int], weights: Weights) -> None:
        super().__init__(address, Handler)
        self.weights = weights
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request: Request, client_address: object) -> None:
        """In a thread, when there is a place."""
        self._places.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Request, client_address: object) -> None:
        """One connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Request, client_address: object) -> None:
        """A client that went away is no news."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def setup(self) -> None:
        """Answers are short: none waits for another one to fill a packet."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def do_GET(self) -> None:
        """Which version is served, and which is here."""
        if self.path != "/version":
            return self._say(404, {"error": "there are GET /version and POST /answer"})
        model = self.server.weights.current
        return self._say(200, {"serving": model.version if model else 0, "here": self.server.weights.here()})

    def do_POST(self) -> None:
        """An answer."""
        # One look: whatever is served a moment later, this request is answered by one version.
        model = self.server.weights.current
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BYTES:
            self.close_connection = True
            return self._say(413, {"error": f"a request says its Content-Length, of at most {MAX_BYTES} bytes"})
        body = self.rfile.read(int(length))
        if self.path != "/answer":
            return self._say(404, {"error": "there are GET /version and POST /answer"})
        if model is None:
            return self._say(503, {"error": "no version has arrived yet: try again later"})
        try:
            x = np.asarray(json.loads(body)["x"], np.float32)
            if x.shape != (model.inputs,):
                raise ValueError(f"x has the shape {x.shape}")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return self._say(400, {"error": f'a request is {{"x": [{model.inputs} numbers]}}: {error}'})
        return self._say(200, {"version": model.version, "y": model.answer(x).tolist()})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library calls it
        """Requests are not news."""

    def _say(self, status: int, said: Mapping[str, object]) -> None:
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to end; the exit status."""
    options = _parser().parse_args(arguments)
    weights, ended = Weights(options.folder, options.model, options.keep), threading.Event()
    try:
        weights.look()
        server = Server(options.listen, weights)
    except (OSError, BlastError) as error:
        sys.stderr.write(f"worker: cannot serve from {options.folder} at {options.listen}: {error}\n")
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(json.dumps({"event": "ready", "port": server.server_address[1]}), flush=True)
        while not ended.wait(options.look):
            try:
                weights.look()
            except OSError as error:
                tell(f"{options.folder} cannot be read: {error}; what is served goes on")
        server.shutdown()
    return 0


def tell(sentence: str) -> None:
    """What is news goes to standard error."""
    sys.stderr.write(f"worker: {sentence}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=model_name, help="its name, the same at the publisher")
    parser.add_argument("--folder", required=True, type=Path, help="that of this host's agent; old versions go from it")
    parser.add_argument("--listen", type=_address, default=("127.0.0.1", 8080), metavar="ADDRESS:PORT")
    parser.add_argument("--keep", type=_count, default=2, help="versions that stay on disk (default: 2)")
    parser.add_argument("--look", type=seconds, default=0.5, metavar="SECONDS", help="between two looks (default: 0.5)")
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not ADDRESS:PORT")
    return host, int(port)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
