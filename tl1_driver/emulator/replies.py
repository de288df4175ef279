"""What the emulated switch says: TL1 messages and the rows of a Glimmerglass, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tl1_driver.circuits import DARK_BELOW_DBM
from tl1_driver.emulator.crossbar import Crossbar
from tl1_driver.emulator.requests import Port

DARK_DBM = -48.5
"""What the monitor of a port without light reads."""


def message(sid: str, date: datetime, second_line: str, body: Sequence[str] = (), end: str = ";") -> str:
    """One message, or one part of it if `end` is `>`."""
    lines = "".join(f"   {line}\r\n" for line in body)
    return f"\r\n\n   {sid} {date:%y-%m-%d %H:%M:%S}\r\n{second_line}\r\n{lines}{end}"


def answer(sid: str, date: datetime, ctag: str, rows: Sequence[str], rows_per_part: int = 0) -> str:
    """A COMPLD, cut into parts of `rows_per_part` rows unless that is 0."""
    size = rows_per_part or max(1, len(rows))
    parts = [rows[first : first + size] for first in range(0, len(rows), size)] or [()]
    ends = [">"] * (len(parts) - 1) + [";"]
    second_line = f"M  {ctag} COMPLD"
    return "".join(message(sid, date, second_line, part, end) for part, end in zip(parts, ends, strict=True))


def denial(sid: str, date: datetime, ctag: str, code: str, text: str) -> str:
    """A DENY with its error code and a comment."""
    return message(sid, date, f"M  {ctag} DENY", [code, f"/* {text} */"])


def connection_rows(crossbar: Crossbar, ports: Sequence[Port], power: Mapping[Port, float]) -> list[str]:
    """`rtrv-crs-fiber`: a row for each circuit, input or output that is concerned."""
    pairs = dict.fromkeys(_pair(crossbar, port) for port in ports)
    return [_connection_row(source, target, power) for source, target in pairs]


def _pair(crossbar: Crossbar, port: Port) -> tuple[int, int]:
    """The port and its partner as (input, output), 0 for none."""
    if port.side == "in":
        return port.number, crossbar.output_of(port.number) or 0
    return crossbar.input_of(port.number) or 0, port.number


def _connection_row(source: int, target: int, power: Mapping[Port, float]) -> str:
    entering = power.get(Port("in", source), DARK_DBM) if source else 0.0
    leaving = power.get(Port("out", target), DARK_DBM) if target else 0.0
    made = bool(source and target)
    state, cause = _state(made, lit=entering >= DARK_BELOW_DBM)
    loss = entering - leaving if made and state == "steady" else 0.0
    columns = {
        "IPORTID": Port("in", source).name if source else "0",
        "IPORTNAME": "",
        "OPORTID": Port("out", target).name if target else "0",
        "OPORTNAME": "",
        "CONNID": "0",
        "CONNSTATE": state,
        "CONNCAUSE": cause,
        "INPWR": f"{entering:.3f}",
        "OUTPWR": f"{leaving:.3f}",
        "PWRLOSS": f"{loss:.3f}",
        "CONNLOCK": "0",
        "CONNLOCKUSER": "",
    }
    return _row(columns)


def _state(made: bool, lit: bool) -> tuple[str, str]:
    if not made:
        return "single", "none"
    return ("steady", "none") if lit else ("fault", "initial_connection_timer_expired")


def port_rows(ports: Sequence[Port]) -> list[str]:
    """`rtrv-cfg-fiber`: a row for each port."""
    return [
        _row(
            {
                "PORTID": port.name,
                "PORTNAME": "",
                "PORTDIR": "input" if port.side == "in" else "output",
                "PORTHEALTH": "good",
                "PORTCAT": "nor",
                "PORTPRIV": "0x1",
            }
        )
        for port in ports
    ]


def power_rows(ports: Sequence[Port], power: Mapping[Port, float]) -> list[str]:
    """`rtrv-port-power`: a row for each port, in dBm."""
    return [_row({"PORTID": port.name, "PORTPOWER": f"{power.get(port, DARK_DBM):.3f}"}) for port in ports]


def system_rows(crossbar: Crossbar) -> list[str]:
    """`rtrv-system-info`."""
    return [
        _row({"SystemType": "System300"}),
        _row({"SerialNumber": "EMULATED"}),
        _row({"LicensedPortMatrix": f"{crossbar.inputs}x{crossbar.outputs}"}),
    ]


def _row(columns: Mapping[str, str]) -> str:
    return '"GGN:' + ",".join(f"{name}={value}" for name, value in columns.items()) + '"'
