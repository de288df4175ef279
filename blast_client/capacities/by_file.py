"""Capacities that somebody has written down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blast_client.capacities.capacities import MAX_BYTES, MAX_HOSTS, Capacities, WrongNetwork, read_capacities


class FileCapacities:
    """A CapacitySource: a network file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """Those between the root and the receivers that the file has. Raises WrongNetwork."""
        try:
            found = read_capacities(self._read())
        except OSError as error:
            raise WrongNetwork(f"{self._path} cannot be read: {error.strerror}") from error
        except WrongNetwork as error:
            raise WrongNetwork(f"{self._path}: {error}") from error
        refuse_others(found, root, receivers)
        return found

    def _read(self) -> bytes:
        with self._path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise WrongNetwork(f"more than {MAX_BYTES} bytes are no network of {MAX_HOSTS} hosts")
        return data


def refuse_others(found: Capacities, root: str, receivers: Sequence[str]) -> None:
    """Raises WrongNetwork if these are not the capacities of a transfer from `root` to `receivers`."""
    if found.root != root:
        raise WrongNetwork(f"the network is one of the root {found.root!r}, and not of {root!r}")
    if absent := [name for name in receivers if name not in found.hosts]:
        raise WrongNetwork(f"the network has no host {absent[0]!r}")
