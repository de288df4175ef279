"""What a dialect is: how one vendor's switches name ports, write commands and list connections."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tl1_driver.alarms import LEAVING, Alarm, Row, read_rows
from tl1_driver.circuits import Circuit, CircuitState, Port
from tl1_driver.codec import encode_command
from tl1_driver.errors import InvalidCommand
from tl1_driver.messages import Autonomous, Command
from tl1_driver.payload import quote
from tl1_driver.procedure import Procedure
from tl1_driver.session import Deadlines, Wire

LightCheckTime = Literal["off", "before_grant", "under_traffic"]
"""A switch may not measure power, measure it always, or only while data flows."""

_LONGEST_CTAG = "9" * 9


@dataclass(frozen=True)
class Dialect(ABC):
    """One vendor's TL1.

    `port` is the TCP port, `keepalive` the seconds of silence after which to ask for a sign of life, `settling` the
    seconds for which the switch's list may lack a change that the switch has confirmed.
    `light_check` is when to look for light at the leaves of a tree where nobody has said otherwise: `before_grant` with
    switches that measure power at every port, `off` where monitors are an option that a unit may lack.

    What takes commands is a procedure (`procedure.py`). A switch limits the length of commands: circuits go out in
    as few as fit, in the order in which they were given.
    """

    name: str
    port: int
    wire: Wire = field(default_factory=Wire)
    deadlines: Deadlines = field(default_factory=Deadlines)
    keepalive: float = 60.0
    settling: float = 1.5
    light_check: LightCheckTime = "off"

    @abstractmethod
    def input_name(self, number: int) -> str:
        """The switch's name of input `number`. Raises `InvalidCommand` if there can be none."""

    @abstractmethod
    def output_name(self, number: int) -> str:
        """The switch's name of output `number`. Raises `InvalidCommand` if there can be none."""

    @abstractmethod
    def connect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Make `circuits`; over when the light paths are set. Raises `Denied`, of which some may be made then."""

    @abstractmethod
    def disconnect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Remove `circuits`, and no other. Raises `Denied`, of which some may be removed then."""

    @abstractmethod
    def circuits(self) -> Procedure[list[CircuitState]]:
        """All circuits on the switch. Raises `MalformedAnswer`."""

    @abstractmethod
    def powers(self) -> Procedure[dict[Port, float]]:
        """The power in dBm at every port where the switch measures it. Raises `MalformedAnswer`."""

    @abstractmethod
    def ports_named(self, aid: str) -> list[Port]:
        """The ports that the switch calls `aid`: none, one, or an input and an output that share a name."""

    def introduce(self) -> Procedure[Dialect]:
        """Ask the switch what must be known to speak with it. Returns this dialect with that filled in."""
        yield from ()
        return self

    def login(self, user: str, password: str) -> Command:
        """The command that logs `user` in."""
        secret = quote(password)
        return Command("ACT-USER", quote(user), ("", secret), secret=secret)

    def logout(self, user: str) -> Command:
        """The command that logs `user` out."""
        return Command("CANC-USER", quote(user))

    def sign_of_life(self) -> Command:
        """A command that changes nothing and is always answered."""
        return Command("RTRV-HDR")

    def alarms(self, message: Autonomous) -> list[Alarm]:
        """What `message` says about which ports."""
        return [Alarm(self._place(row), row.aid, row.condition, row.notification) for row in read_rows(message.lines)]

    def in_as_few_as_fit(
        self, circuits: Sequence[Circuit], command: Callable[[Sequence[Circuit]], Command]
    ) -> list[Command]:
        """`command(circuits)` if the switch accepts that length, else the commands for the halves."""
        whole = command(circuits)
        try:
            encode_command(whole, _LONGEST_CTAG, limit=self.wire.send_limit, terminator=self.wire.terminator)
        except InvalidCommand:
            if len(circuits) == 1:
                raise
            middle = len(circuits) // 2
            return self.in_as_few_as_fit(circuits[:middle], command) + self.in_as_few_as_fit(circuits[middle:], command)
        return [whole]

    def _place(self, row: Row) -> Port | None:
        ports = self.ports_named(row.aid)
        if len(ports) < 2:
            return ports[0] if ports else None
        side = "out" if row.direction == LEAVING else "in"
        return next(port for port in ports if port.side == side)


def power(text: str) -> float | None:
    """A reading in dBm, None if the switch gives none."""
    try:
        reading = float(text)
    except ValueError:
        return None
    return reading if math.isfinite(reading) else None
