"""What a dialect is: how one vendor's switches name ports, write commands and list connections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tl1_driver.circuits import Circuit, CircuitState
from tl1_driver.codec import encode_command
from tl1_driver.errors import InvalidCommand
from tl1_driver.messages import Command
from tl1_driver.payload import quote
from tl1_driver.session import Deadlines, Wire

_LONGEST_CTAG = "9" * 9


@dataclass(frozen=True)
class Dialect(ABC):
    """One vendor's TL1. `port` is the TCP port, `keepalive` the seconds of silence after which to ask for a sign.

    The commands for many circuits come as a list because a switch limits their length: normally one, more only when
    it would be too long; the order of the circuits is kept.
    """

    name: str
    port: int
    wire: Wire = field(default_factory=Wire)
    deadlines: Deadlines = field(default_factory=Deadlines)
    keepalive: float = 60.0

    @abstractmethod
    def input_name(self, number: int) -> str:
        """The switch's name of input `number`. Raises `InvalidCommand` if there can be none."""

    @abstractmethod
    def output_name(self, number: int) -> str:
        """The switch's name of output `number`. Raises `InvalidCommand` if there can be none."""

    @abstractmethod
    def connect(self, circuits: Sequence[Circuit]) -> list[Command]:
        """The commands that make `circuits`, answered when the light paths are set."""

    @abstractmethod
    def disconnect(self, circuits: Sequence[Circuit]) -> list[Command]:
        """The commands that remove `circuits`."""

    @abstractmethod
    def list_circuits(self) -> Command:
        """The command that lists all circuits."""

    @abstractmethod
    def read_circuits(self, lines: Sequence[str]) -> list[CircuitState]:
        """The circuits in the answer to `list_circuits`. Raises `MalformedAnswer`."""

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
