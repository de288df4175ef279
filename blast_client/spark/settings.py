"""Where the agents beside Spark's executors are, and what goes by Blast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from blast_client.base_error import WrongArgument
from blast_client.receivers import Receiver, parse_receiver
from blast_client.round import RoundSettings

Agents = Mapping[str, str] | Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How values go to executors.

    `agents` says which agent is beside the executors of a host, by the host's name in Spark: HOST, HOST:PORT or
    NAME=ADDRESS:PORT, where HOST or NAME is what the controller calls it. A mapping, or a function that gives None for
    who has none; without it every host is called in the fabric as in Spark, and its agent has the usual port. `folder`
    is a folder of the agents; `path`, where it lies on executors' hosts (None: $BLAST_FOLDER there). Values of less
    than `threshold` bytes go by Spark. `round`: None for `settings_of_environment()`. Executors that find no copy ask
    the driver at `port` of spark.driver.host (0: any). Raises WrongArgument.
    """

    agents: Agents | None = None
    folder: str = "spark"
    path: str | None = None
    threshold: int = 4 << 20
    round: RoundSettings | None = field(default=None, repr=False)
    port: int = 0

    def __post_init__(self) -> None:
        if self.threshold < 0 or not 0 <= self.port < 1 << 16:
            raise WrongArgument("threshold is a number of bytes, and port one of TCP (0: any)")

    def receivers(self, hosts: Iterable[str]) -> tuple[dict[str, Receiver], list[str]]:
        """The agent of each of these hosts of Spark's, and the hosts that have none. Raises WrongArgument."""
        found, without = {}, []
        for host in sorted(hosts):
            written = self._written(host)
            if written is None:
                without.append(host)
                continue
            try:
                found[host] = parse_receiver(written)
            except ValueError as error:
                raise WrongArgument(f"agents: for the host {host!r}, {error}") from error
        return found, without

    def _written(self, host: str) -> str | None:
        if self.agents is None:
            return host
        return self.agents(host) if callable(self.agents) else self.agents.get(host)
