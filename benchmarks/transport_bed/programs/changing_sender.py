"""Sends a file by light or along the pipeline, and by the other from the moment on when it reads a line.

    changing_sender.py FILE NAME=ADDRESS:PORT,… INTERFACE_ADDRESS GROUP:PORT RATE_MBPS optical|pipeline SECRET_FILE

In the end it says the result as one JSON line, as `python -m blast_transport send` does.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from blast_transport.carriers.choices import CarrierChoice, Chain, Light
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import SharedSecret, read_secret
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings


def main() -> int:
    """Send."""
    file, to, interface_address, group, rate_mbps, first, secret_file = sys.argv[1:]
    secret = SharedSecret(read_secret(Path(secret_file)))
    address, port = _endpoint(group)
    ways: list[CarrierChoice] = [Light(address, port, float(rate_mbps) * 1e6), Chain()]
    if first == "pipeline":
        ways.reverse()
    route = Route(ways[0])
    threading.Thread(target=_change, args=(route, ways[1]), daemon=True).start()
    receivers = [(name, *_endpoint(there)) for name, _, there in (part.partition("=") for part in to.split(","))]
    settings = SenderSettings(interface_address, dialer=dialer(secret), credentials=secret)
    with Sender(receivers, settings) as sender:
        result = sender.send_file(Path(file), route)
    print(json.dumps(result.to_json()), flush=True)
    return 0 if result.complete == len(receivers) else 3


def _change(route: Route, way: CarrierChoice) -> None:
    if sys.stdin.readline():
        route.go(way)


def _endpoint(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return address, int(port)


if __name__ == "__main__":
    sys.exit(main())
