"""Receives weights with `blast_client.receive` whenever it reads `small` or `weights`, and reads every byte of them.

blast_hold.py FOLDER
"""

from __future__ import annotations

import sys

from weights import digest_of_layers, held, say

from blast_client import receive

_PATIENCE_SECONDS = 3600.0


def main() -> None:
    """Receive until nobody sends more."""
    (folder,) = sys.argv[1:]
    # Else its library is loaded with the first weights.
    say("ready", library=receive.__module__)
    for line in sys.stdin:
        held(digest_of_layers(receive(line.strip(), folder, timeout=_PATIENCE_SECONDS)))


if __name__ == "__main__":
    main()
