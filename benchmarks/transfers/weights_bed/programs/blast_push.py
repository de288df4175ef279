"""Pushes weights with `blast_client.broadcast` when it reads `small` or `weights`.

blast_push.py FILE NAME=ADDRESS:PORT,… SECRET_FILE LIGHT_ADDRESS CONTROLLER|none
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from weights import layers, print_event

from blast_client import RoundSettings, broadcast
from blast_transport.credentials.material import SharedSecret, read_secret


def main() -> None:
    """Push until standard input ends."""
    source, to, secret_file, optical_address, controller = sys.argv[1:]
    secret = SharedSecret(read_secret(Path(secret_file)))
    light = RoundSettings(controller=controller, sender="h0", optical_address=optical_address, credentials=secret)
    settings = RoundSettings(controller=None, credentials=secret) if controller == "none" else light
    models = {name: layers(source, name) for name in ("small", "weights")}
    print_event("ready")
    for line in sys.stdin:
        name = line.strip()
        began = time.monotonic()
        outcome = broadcast(models[name], to.split(","), name, settings=settings).check()
        notes = {"transports": outcome.transports, "no_optical_path": outcome.no_optical_path}
        print_event("sent", began=began, notes=notes)


if __name__ == "__main__":
    main()
