"""Receives weights with `blast_client.receive` when it reads `small` or `weights`, and reads every byte of them.

blast_hold.py FOLDER
"""

from __future__ import annotations

import sys

from weights import digest_of_layers, held, print_event

from blast_client import receive


def main() -> None:
    """Receive until standard input ends."""
    (folder,) = sys.argv[1:]
    # Loads the library before the first weights.
    print_event("ready", library=receive.__module__)
    for line in sys.stdin:
        held(digest_of_layers(receive(line.strip(), folder, timeout=3600.0)))


if __name__ == "__main__":
    main()
