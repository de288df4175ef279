"""A BitTorrent peer over TCP in a swarm of known members; it runs on Debian's own Python.

    torrent_peer.py make FILE TORRENT               write the torrent of a file
    torrent_peer.py receive TORRENT FOLDER IP IP…   take part; the further addresses are peers to connect to
    torrent_peer.py seed TORRENT FOLDER IP IP…      the same, with the whole file already in the folder

It prints "ready", and "complete" when it has the whole file; then it stays.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import libtorrent  # type: ignore[import-not-found]

PORT = 6881
PIECE = 1 << 20


def make(file: Path, torrent: Path) -> None:
    """Hash the file."""
    files = libtorrent.file_storage()
    files.add_file(file.name, file.stat().st_size)
    creator = libtorrent.create_torrent(files, PIECE, libtorrent.create_torrent.v1_only)
    libtorrent.set_piece_hashes(creator, str(file.parent))
    torrent.write_bytes(libtorrent.bencode(creator.generate()))


def take_part(has_it: bool, torrent: str, folder: str, address: str, *peers: str) -> None:
    """Connect and exchange pieces."""
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
    print("ready", flush=True)
    while not handle.status().is_seeding:
        time.sleep(0.01)
    print("complete", flush=True)
    while True:
        time.sleep(1)


def settings(address: str) -> dict[str, object]:
    """Return settings without discovery, uTP, encryption and limits, for speed among known peers."""
    off = ("enable_dht", "enable_lsd", "enable_upnp", "enable_natpmp", "enable_outgoing_utp", "enable_incoming_utp")
    some = {"unchoke_slots_limit": 100, "connection_speed": 200, "alert_mask": 0, "in_enc_policy": 2}
    return {**dict.fromkeys(off, False), **some, "out_enc_policy": 2, "listen_interfaces": f"{address}:{PORT}"}


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    if role == "make":
        make(*map(Path, arguments))
    else:
        take_part(role == "seed", *arguments)
