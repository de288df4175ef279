"""A BitTorrent peer, over TCP alone, in one swarm whose members are told to it. Runs on Debian's own Python.

    torrent_peer.py make FILE TORRENT               write the torrent of a file
    torrent_peer.py receive TORRENT FOLDER IP IP…   take part; the further addresses are peers to connect to
    torrent_peer.py seed TORRENT FOLDER IP IP…      the same, with the whole file already in the folder

It says "ready", and "complete" when it has the whole file; it then stays until it is ended.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import libtorrent

PORT = 6881
PIECE = 1 << 20
_LOOK_SECONDS = 0.01


def main() -> int:
    """Run."""
    role, *arguments = sys.argv[1:]
    if role == "make":
        make(Path(arguments[0]), Path(arguments[1]))
    else:
        take_part(role == "seed", *arguments)
    return 0


def make(file: Path, torrent: Path) -> None:
    """Hash the file."""
    files = libtorrent.file_storage()
    files.add_file(file.name, file.stat().st_size)
    creator = libtorrent.create_torrent(files, PIECE, libtorrent.create_torrent.v1_only)
    libtorrent.set_piece_hashes(creator, str(file.parent))
    torrent.write_bytes(libtorrent.bencode(creator.generate()))


def take_part(has_it: bool, torrent: str, folder: str, address: str, *peers: str) -> None:
    """Connect and exchange, for good."""
    session = libtorrent.session(settings(address))
    parameters = libtorrent.add_torrent_params()
    parameters.ti = libtorrent.torrent_info(torrent)
    parameters.save_path = folder
    parameters.flags &= ~(libtorrent.torrent_flags.paused | libtorrent.torrent_flags.auto_managed)
    if has_it:
        parameters.flags |= libtorrent.torrent_flags.seed_mode
    handle = session.add_torrent(parameters)
    for peer in peers:
        handle.connect_peer((peer, PORT))
    say("ready")
    while not handle.status().is_seeding:
        time.sleep(_LOOK_SECONDS)
    say("complete")
    while True:
        time.sleep(1)


def settings(address: str) -> dict[str, object]:
    """No discovery, no uTP, no encryption, no limit: as fast as it can be among known peers."""
    off = ("enable_dht", "enable_lsd", "enable_upnp", "enable_natpmp", "enable_outgoing_utp", "enable_incoming_utp")
    return {
        **dict.fromkeys(off, False),
        "listen_interfaces": f"{address}:{PORT}",
        "unchoke_slots_limit": 100,
        "connection_speed": 200,
        "alert_mask": 0,
        "in_enc_policy": 2,
        "out_enc_policy": 2,
    }


def say(line: str) -> None:
    """At once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
