"""Settings of broadcasts over Blast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from blast_client.api.base_error import InvalidArgumentError
from blast_client.send.receivers import Receiver, parse_receiver
from blast_client.send.round import RoundSettings

Agents = Mapping[str, str] | Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Settings of broadcasts over Blast.

    Parameters
    ----------
    agents
        Agent of each host, by its name in Spark: a mapping, or a function that returns None for a host without an
        agent. Values are HOST, HOST:PORT or NAME=ADDRESS:PORT with the controller's name of the host. None: hosts have
        the same names in Spark and in the fabric, and agents use the default port.
    folder
        Folder of the agents.
    path
        Path of that folder on the hosts of executors. None: $BLAST_FOLDER there.
    threshold
        Size in bytes below which Spark's broadcast carries a value.
    round
        Settings of transfers. None: `settings_of_environment()`.
    port
        TCP port of the driver for executors that find no copy. 0: any.

    Raises
    ------
    InvalidArgumentError
        The threshold or the port is out of range.
    """

    agents: Agents | None = None
    folder: str = "spark"
    path: str | None = None
    threshold: int = 4 << 20
    round: RoundSettings | None = field(default=None, repr=False)
    port: int = 0

    def __post_init__(self) -> None:
        if self.threshold < 0 or not 0 <= self.port < 1 << 16:
            raise InvalidArgumentError("threshold must be at least 0 bytes, and port from 0 (any) to 65535")

    def receivers(self, hosts: Iterable[str]) -> tuple[dict[str, Receiver], list[str]]:
        """Return the agents of hosts, and the hosts without an agent. Raises InvalidArgumentError."""
        found, without = {}, []
        for host in sorted(hosts):
            written = self._written(host)
            if written is None:
                without.append(host)
                continue
            try:
                found[host] = parse_receiver(written)
            except ValueError as error:
                raise InvalidArgumentError(f"agents: for the host {host!r}, {error}") from error
        return found, without

    def _written(self, host: str) -> str | None:
        if self.agents is None:
            return host
        return self.agents(host) if callable(self.agents) else self.agents.get(host)
