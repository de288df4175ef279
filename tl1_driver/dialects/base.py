"""The interface of a dialect: how one vendor's switches name ports, write commands and list connections."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from optical_switch.model import Alarm, Circuit, Port
from optical_switch.session import LightCheckTime
from tl1_driver.protocol.alarms import CLEARED, LEAVING, AlarmRow, read_rows
from tl1_driver.protocol.circuits import ListedCircuit
from tl1_driver.protocol.codec import encode_command
from tl1_driver.protocol.errors import InvalidCommandError
from tl1_driver.protocol.messages import Autonomous, Tl1Command
from tl1_driver.protocol.payload import quote
from tl1_driver.protocol.procedure import Procedure
from tl1_driver.protocol.session import ExchangeDeadlines, Wire

_LONGEST_CTAG = "9" * 9


@dataclass(frozen=True)
class Dialect(ABC):
    """One vendor's TL1.

    Methods that send commands are procedures (`procedure.py`). Apart from the exceptions that they list, procedures
    raise the `SwitchError` of a command that fails. Switches limit the length of commands: a command that is too long
    is divided, with the circuits in the given order.

    Parameters
    ----------
    name : str
        Name used in configurations.
    port : int
        Default TCP port of the switch.
    wire : Wire
        Format and size limits of commands and answers.
    deadlines : Deadlines
        Time limits for answers.
    keepalive : float
        Seconds of silence after which a keepalive is sent.
    confirms : bool
        True if a change is in effect when the switch confirms it. False: the list must be read until it shows it.
    light_check : LightCheckTime
        Default time of the power check at the leaves of a tree: `before_grant` for switches that measure power at every
        port, `off` if monitors are an option that a unit may lack.
    """

    name: str
    port: int
    wire: Wire = field(default_factory=Wire)
    deadlines: ExchangeDeadlines = field(default_factory=ExchangeDeadlines)
    keepalive: float = 60.0
    confirms: bool = True
    light_check: LightCheckTime = "off"

    @abstractmethod
    def input_name(self, number: int) -> str:
        """Return the switch's name of an input.

        Parameters
        ----------
        number : int
            Number of the input, from 1.

        Returns
        -------
        str
            Name as commands have it.

        Raises
        ------
        InvalidCommandError
            If there is no such input.
        """

    @abstractmethod
    def output_name(self, number: int) -> str:
        """Return the switch's name of an output.

        Parameters
        ----------
        number : int
            Number of the output, from 1.

        Returns
        -------
        str
            Name as commands have it.

        Raises
        ------
        InvalidCommandError
            If there is no such output.
        """

    @abstractmethod
    def connect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Set circuits.

        Parameters
        ----------
        circuits : Sequence[Circuit]
            Circuits to set, in this order.

        Returns
        -------
        Procedure[None]
            Procedure that ends when the light paths are set.

        Raises
        ------
        InvalidCommandError
            If a circuit has a port that does not exist; nothing is sent.
        CommandDeniedError
            If the switch refuses a command; some circuits may be set, except after `CommandWithheldError`.
        """

    @abstractmethod
    def disconnect(self, circuits: Sequence[Circuit]) -> Procedure[None]:
        """Remove exactly these circuits.

        Parameters
        ----------
        circuits : Sequence[Circuit]
            Circuits to remove.

        Returns
        -------
        Procedure[None]
            Procedure that ends when the circuits are removed.

        Raises
        ------
        InvalidCommandError
            If a circuit has a port that does not exist; nothing is sent.
        CommandDeniedError
            If the switch refuses a command; some circuits may be removed, except after `CommandWithheldError`.
        """

    @abstractmethod
    def circuits(self) -> Procedure[list[ListedCircuit]]:
        """Return all circuits on the switch.

        Returns
        -------
        Procedure[list[ListedCircuit]]
            Procedure that returns the circuits with their states.

        Raises
        ------
        MalformedResponseError
            If the list cannot be read.
        """

    @abstractmethod
    def powers(self) -> Procedure[dict[Port, float]]:
        """Return the power at every port that the switch measures.

        Returns
        -------
        Procedure[dict[Port, float]]
            Procedure that returns the power in dBm by port.

        Raises
        ------
        MalformedResponseError
            If an answer cannot be read.
        """

    @abstractmethod
    def ports_named(self, aid: str) -> list[Port]:
        """Return the ports that have a name on the switch.

        Parameters
        ----------
        aid : str
            Access identifier as in an answer of the switch.

        Returns
        -------
        list[Port]
            No port, one, or an input and an output that share the name.
        """

    def introduce(self) -> Procedure[Dialect]:
        """Query the properties of the switch that the dialect needs.

        Yields
        ------
        Step
            Commands to send, and pauses.

        Returns
        -------
        Dialect
            A copy of this dialect with the properties; the dialect itself if it needs none.

        Raises
        ------
        MalformedResponseError
            If the switch does not report a property.
        """
        yield from ()
        return self

    def login(self, user: str, password: str) -> Tl1Command:
        """Return the command that logs a user in.

        Parameters
        ----------
        user : str
            Name of the user.
        password : str
            Password, which transcripts mask.

        Returns
        -------
        Command
            The command to send first.

        Raises
        ------
        InvalidCommandError
            If the name or the password has control characters.
        """
        secret = quote(password)
        return Tl1Command("ACT-USER", quote(user), ("", secret), secret=secret)

    def logout(self, user: str) -> Tl1Command:
        """Return the command that logs a user out.

        Parameters
        ----------
        user : str
            Name of the user.

        Returns
        -------
        Command
            The command to send last.

        Raises
        ------
        InvalidCommandError
            If the name has control characters.
        """
        return Tl1Command("CANC-USER", quote(user))

    def sign_of_life(self) -> Tl1Command:
        """Return the command that serves as a keepalive.

        Returns
        -------
        Command
            A command that changes nothing and is always answered.
        """
        return Tl1Command("RTRV-HDR")

    def alarms(self, message: Autonomous) -> list[Alarm]:
        """Return the conditions that an autonomous message reports.

        Parameters
        ----------
        message : Autonomous
            Message of the switch.

        Returns
        -------
        list[Alarm]
            The conditions with their ports.
        """
        return [
            Alarm(self._place(row), row.aid, row.condition, row.notification, row.notification == CLEARED)
            for row in read_rows(message.lines)
        ]

    def in_as_few_as_fit(
        self, circuits: Sequence[Circuit], command: Callable[[Sequence[Circuit]], Tl1Command]
    ) -> list[Tl1Command]:
        """Return the commands for a change, none longer than the switch accepts.

        Parameters
        ----------
        circuits : Sequence[Circuit]
            Circuits of one change, at least one.
        command : Callable[[Sequence[Circuit]], Command]
            Function that writes the command for some of the circuits.

        Returns
        -------
        list[Command]
            One command for all circuits if it fits, otherwise the commands for each half, in order.

        Raises
        ------
        InvalidCommandError
            If a port does not exist, or the command for a single circuit cannot be sent.
        """
        whole = command(circuits)
        try:
            encode_command(whole, _LONGEST_CTAG, limit=self.wire.send_limit, terminator=self.wire.terminator)
        except InvalidCommandError:
            if len(circuits) == 1:
                raise
            middle = len(circuits) // 2
            return self.in_as_few_as_fit(circuits[:middle], command) + self.in_as_few_as_fit(circuits[middle:], command)
        return [whole]

    def _place(self, row: AlarmRow) -> Port | None:
        ports = self.ports_named(row.aid)
        if len(ports) < 2:
            return ports[0] if ports else None
        side = "out" if row.direction == LEAVING else "in"
        return next(port for port in ports if port.side == side)


def power(text: str) -> float | None:
    """Return a reading in dBm, or None if the switch reports none."""
    try:
        reading = float(text)
    except ValueError:
        return None
    return reading if math.isfinite(reading) else None
