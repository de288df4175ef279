"""The emulated switch's side of the language: bytes to requests, with Glimmerglass names for ports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tl1_driver.circuits import Circuit
from tl1_driver.emulator.crossbar import UNKNOWN_PORT, Crossbar, Refusal
from tl1_driver.payload import parameters, split_blocks, unquote
from tl1_driver.scanner import PAYLOAD, End, Scanner

COMMAND_LIMIT = 8192
NOT_A_COMMAND = "IICM"
BAD_PARAMETER = "IPNV"
FIRST_NAME = {"in": 10000, "out": 20000}


class Port(NamedTuple):
    """One side of the crossbar and a number from 1."""

    side: Literal["in", "out"]
    number: int

    @property
    def name(self) -> str:
        """What the switch calls it: 10000 + n for inputs, 20000 + n for outputs."""
        return str(FIRST_NAME[self.side] + self.number)


@dataclass(frozen=True, slots=True)
class Request:
    """A command as it arrived; `text` is all of it, for the echo. The CTAG of one without is "0"."""

    text: str
    verb: str
    aid: str = ""
    ctag: str = "0"
    payload: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """The `NAME=value` pairs of the payload, names in capitals."""
        return {name: value for block in self.payload for name, value in parameters(block).items()}


class RequestReader:
    """Cuts what a client sends into requests; line ends between them and inside them do not count."""

    def __init__(self) -> None:
        self._scanner = Scanner()
        self._begun = b""
        self._too_long = False

    def feed(self, data: bytes) -> Iterator[Request]:
        """The requests that `data` completes. One that is too long comes out without a verb."""
        self._scanner.push(data)
        while (segment := self._scanner.next_segment(PAYLOAD, COMMAND_LIMIT)) is not None:
            self._begun += segment.text
            self._too_long |= len(self._begun) > COMMAND_LIMIT or segment.end is End.TOO_LONG
            if self._too_long:
                self._begun = b""
            if segment.end is End.SEMICOLON:
                text = self._begun.decode("utf-8", "backslashreplace").strip()
                self._begun, self._too_long = b"", False
                yield _request(text)


def _request(text: str) -> Request:
    fields = split_blocks(text)
    verb, _, aid, ctag = [*fields, "", "", ""][:4]
    return Request(text, verb.strip().upper(), unquote(aid), ctag.strip() or "0", tuple(fields[5:]))


def ports(aid: str, crossbar: Crossbar) -> list[Port]:
    """The ports that `aid` names: `all`, or names and ranges joined by `&` (`10001&10003&&10007`).

    Raises `Refusal` if one does not exist.
    """
    if aid.lower() == "all":
        return _every_port(crossbar)
    return [port for part in aid.replace("&&", "..").split("&") for port in _range(part, crossbar)]


def _range(part: str, crossbar: Crossbar) -> list[Port]:
    first, *more = (_port(name, crossbar) for name in part.split(".."))
    if not more:
        return [first]
    if len(more) > 1 or more[0].side != first.side:
        raise Refusal(UNKNOWN_PORT, f"{part} is not a range of ports")
    return [Port(first.side, number) for number in range(first.number, more[0].number + 1)]


def _every_port(crossbar: Crossbar) -> list[Port]:
    return [Port("in", n + 1) for n in range(crossbar.inputs)] + [Port("out", n + 1) for n in range(crossbar.outputs)]


def _port(name: str, crossbar: Crossbar) -> Port:
    number = int(name) if name.isascii() and name.isdigit() and len(name) == 5 else 0
    if 1 <= number - FIRST_NAME["in"] <= crossbar.inputs:
        return Port("in", number - FIRST_NAME["in"])
    if 1 <= number - FIRST_NAME["out"] <= crossbar.outputs:
        return Port("out", number - FIRST_NAME["out"])
    raise Refusal(UNKNOWN_PORT, f"there is no port {name}")


def circuits_named(aid: str, crossbar: Crossbar) -> list[Circuit]:
    """The circuits `in&in,out&out` names, the n-th input with the n-th output. Raises `Refusal`."""
    sides = [ports(side, crossbar) for side in aid.split(",")]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        raise Refusal(UNKNOWN_PORT, "the command needs as many outputs as inputs")
    if any(port.side != "in" for port in sides[0]) or any(port.side != "out" for port in sides[1]):
        raise Refusal(UNKNOWN_PORT, "the command needs inputs before the comma and outputs after it")
    return [Circuit(source.number, target.number) for source, target in zip(*sides, strict=True)]


def circuits_to_delete(aid: str, crossbar: Crossbar) -> list[Circuit]:
    """The circuits a delete names: `all`, pairs as in a connect, or one end of each. Raises `Refusal`."""
    if aid.lower() == "all":
        return list(crossbar.circuits)
    if "," in aid:
        return circuits_named(aid, crossbar)
    return list(dict.fromkeys(_circuit_at(port, crossbar) for port in ports(aid, crossbar)))


def _circuit_at(port: Port, crossbar: Crossbar) -> Circuit:
    partner = crossbar.output_of(port.number) if port.side == "in" else crossbar.input_of(port.number)
    if partner is None:
        raise Refusal("SDNC", f"port {port.name} is not connected")
    return Circuit(port.number, partner) if port.side == "in" else Circuit(partner, port.number)
