"""Capacities from a network file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blast_client.capacities.capacities import (
    MAX_BYTES,
    MAX_HOSTS,
    Capacities,
    InvalidNetworkFileError,
    read_capacities,
)


class FileCapacities:
    """A CapacitySource that reads a network file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """Return the capacities of the file. Raises InvalidNetworkFileError for another root or a missing receiver."""
        try:
            found = read_capacities(self._read())
        except OSError as error:
            raise InvalidNetworkFileError(f"cannot read {self._path}: {error.strerror}") from error
        except InvalidNetworkFileError as error:
            raise InvalidNetworkFileError(f"{self._path}: {error}") from error
        refuse_others(found, root, receivers)
        return found

    def _read(self) -> bytes:
        with self._path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InvalidNetworkFileError(
                f"the file is larger than {MAX_BYTES} bytes, the maximum for {MAX_HOSTS} hosts"
            )
        return data


def refuse_others(found: Capacities, root: str, receivers: Sequence[str]) -> None:
    """Raise InvalidNetworkFileError if these are not the capacities of a transfer from `root` to `receivers`."""
    if found.root != root:
        raise InvalidNetworkFileError(f"the root of the network is {found.root!r}, not {root!r}: name it with --root")
    if absent := [name for name in receivers if name not in found.hosts]:
        raise InvalidNetworkFileError(f"the network has no host {absent[0]!r}")
