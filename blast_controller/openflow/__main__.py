"""The OpenFlow part in a process of its own: commands in and events out as JSON lines on standard input and output.

    python -m blast_controller.openflow --listen 127.0.0.1:6653 --config config.json

The configuration is one JSON object with the fields of `Configuration`. A command is one SetForwarding, ReadCommand,
ReadRulesCommand or ProbeCommand, e.g.

    {"datapath": 1, "changes": [{"reservation": 7, "step": 1, "add": [
        {"in_port": 1, "source": "10.0.0.1", "group": "239.77.0.1", "outputs": [9]}]}]}
    {"read": 1}
    {"probe": 1, "port": 9, "payload": "c0ffee"}

and an event is one object with its kind under "event", first of all {"event": "Listening", "port": 6653}. A line
that is no command is answered by {"event": "NotACommand", "reason": …}. The process ends with its standard input:
exit status 0, 1 when it failed or cannot listen, 2 for a wrong configuration.
"""

# ruff: noqa: I001 - the framework comes first: under ryu it patches the standard library
from __future__ import annotations

from blast_base.endpoint import Endpoint, parse_endpoint

from blast_controller.core.model.identifiers import DatapathId

from blast_controller.openflow import framework as _patched_first  # noqa: F401

import argparse
import json
import logging
import os
import select
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from blast_controller.core.model.commands import SetForwarding
from blast_controller.core.model.events import ProbeReceived
from blast_controller.openflow.driver import OpenFlowDriver
from blast_controller.openflow.rules import RuleSettings
from blast_controller.openflow.server import EchoProbe
from blast_controller.openflow.vocabulary import Event
from blast_controller.serving.tls import TlsFileError, ServerTlsSettings

STDIN = 0


@dataclass(frozen=True)
class Configuration:
    """`optical_ports` by datapath id in decimal; times in seconds."""

    optical_ports: dict[DatapathId, list[int]]
    group_network: str
    settings: RuleSettings = field(default_factory=RuleSettings)
    step_timeout: float = 2.0
    echo_interval: float = 3.0
    echo_unanswered: int = 5
    handshake_timeout: float = 10.0
    generation: int | None = 0
    tls: ServerTlsSettings | None = None
    certificates: dict[DatapathId, str] | None = None


@dataclass(frozen=True)
class ReadCommand:
    """Read this datapath's rules and mend what is the driver's own."""

    read: DatapathId


@dataclass(frozen=True)
class ReadRulesCommand:
    """Read this datapath's rules."""

    look: DatapathId


@dataclass(frozen=True)
class ProbeCommand:
    """Send a probe frame out of a port of this datapath; the payload in hexadecimal, as in ProbeReceived."""

    probe: DatapathId
    port: int
    payload: str


@dataclass(frozen=True)
class LeadCommand:
    """Lead, with this generation, and this epoch in the cookies."""

    lead: int
    epoch: int


_CONFIGURATION = TypeAdapter(Configuration)
_COMMAND: TypeAdapter[SetForwarding | ReadCommand | ReadRulesCommand | ProbeCommand | LeadCommand] = TypeAdapter(
    SetForwarding | ReadCommand | ReadRulesCommand | ProbeCommand | LeadCommand
)
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until standard input ends; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m blast_controller.openflow", description=__doc__.splitlines()[0])
    parser.add_argument("--listen", type=_address, default=("127.0.0.1", 6653), metavar="ADDRESS:PORT")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    try:
        driver = _driver(options.listen, _CONFIGURATION.validate_json(options.config.read_bytes()))
    except (ValueError, TlsFileError) as error:  # a pydantic ValidationError is a ValueError
        return _refuse(f"{options.config}: {error}", 2)
    except OSError as error:
        return _refuse(str(error), 1)
    driver.start()
    _write({"event": "Listening", "port": driver.port})
    try:
        # A copy, because eventlet's select never reports descriptor 0.
        for line in _lines(os.dup(STDIN)):
            _command(driver, line)
    finally:
        driver.stop()
    return 0


def _driver(listen: tuple[str, int], configuration: Configuration) -> OpenFlowDriver:
    return OpenFlowDriver(
        listen,
        configuration.settings,
        configuration.optical_ports,
        configuration.group_network,
        _report,
        _end_process,
        configuration.step_timeout,
        EchoProbe(configuration.echo_interval, configuration.echo_unanswered, configuration.handshake_timeout),
        configuration.generation,
        configuration.tls,
        configuration.certificates,
    )


def _command(driver: OpenFlowDriver, line: bytes) -> None:
    try:
        match _COMMAND.validate_json(line):
            case ReadCommand(datapath):
                driver.read(datapath)
            case ReadRulesCommand(datapath):
                driver.look(datapath)
            case ProbeCommand(datapath, port, payload):
                driver.probe(datapath, port, bytes.fromhex(payload))
            case LeadCommand(generation, epoch):
                driver.lead(generation, epoch)
            case change:
                driver.apply(change)
    except ValueError as error:  # a pydantic ValidationError is one
        _write({"event": "NotACommand", "reason": str(error)})


def _lines(descriptor: int) -> Iterator[bytes]:
    """Yield complete lines.

    Waits in `select`, which lets the green threads of eventlet run; reading would stop them all.
    """
    rest = b""
    while True:
        select.select([descriptor], [], [])
        chunk = os.read(descriptor, 65_536)
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())


def _report(event: Event) -> None:
    if isinstance(event, ProbeReceived):
        event = replace(event, payload=event.payload.hex().encode())
    _write({"event": type(event).__name__, **_EVENT.dump_python(event, mode="json")})


def _write(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _refuse(sentence: str, status: int) -> int:
    sys.stderr.write(sentence + "\n")
    return status


def _end_process(_: BaseException) -> None:
    os._exit(1)


def _address(text: str) -> Endpoint:
    try:
        return parse_endpoint(text, min_port=0)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
