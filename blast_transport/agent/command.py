"""`blast agent`: run the agent of a host, check a configuration, print an example of one, make a single file of it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path

from blast_base.command_line import DONE, FAILED, WRONG_INPUT
from blast_transport.agent.bundle import build_bundle
from blast_transport.agent.host_check import check_host
from blast_transport.agent.process import make_server, serve
from blast_transport.agent.reload import AgentReloader
from blast_transport.agent.reporting import Reporter, install_log
from blast_transport.agent.settings import FORMATS, LEVELS, Settings, load
from blast_transport.base.errors import SettingsError, TransportError, sentence

_PROGRAM_MODE = 0o755


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `agent` and its sub-commands."""
    parser = subparsers.add_parser("agent", help="receive on this host, check an agent's configuration")
    add_commands(parser.add_subparsers(metavar="COMMAND", required=True))


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add run, check, example-config and bundle."""
    purpose = "Receive what the configuration allows until SIGTERM or SIGINT ends it; SIGHUP reloads the file."
    run = _command(commands, "run", purpose, "--config /etc/blast/agent.toml")
    _add_config(run)
    run.add_argument("--json", action="store_true", help="print one JSON line per event to standard output")
    run.add_argument("--log-level", choices=LEVELS, help="log level; overrides log.level of the file")
    run.add_argument("--log-format", choices=FORMATS, help="log format; overrides log.format of the file")
    run.set_defaults(run=_run)
    purpose = "Check a configuration, and whether this host has what it names."
    check = _command(commands, "check", purpose, "--config /etc/blast/agent.toml")
    _add_config(check)
    check.add_argument("--json", action="store_true", help="print the whole configuration, defaults included, as JSON")
    check.set_defaults(run=_check)
    purpose = "Print a commented configuration to start from."
    example = _command(commands, "example-config", purpose, "> agent.toml")
    example.set_defaults(run=_example)
    purpose = "Write the agent as a single file, which runs on any host with a supported Python."
    bundle = _command(commands, "bundle", purpose, "--output agent.pyz")
    bundle.add_argument("--output", type=Path, required=True, metavar="FILE", help="output file")
    bundle.set_defaults(run=_bundle)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent's commands alone, for a host that has only the agent's single file."""
    parser = argparse.ArgumentParser(prog="blast agent", description=__doc__)
    add_commands(parser.add_subparsers(metavar="COMMAND", required=True))
    options = parser.parse_args(arguments)
    return int(options.run(options))


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, description: str, example: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=description[0].lower() + description[1:].rstrip("."),
        description=description,
        epilog=f"example:\n  blast agent {name} {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration file (TOML)")


def _run(options: argparse.Namespace) -> int:
    try:
        settings = load(options.config)
        level, form = options.log_level or settings.log.level, options.log_format or settings.log.format
        settings = replace(settings, log=replace(settings.log, level=level, format=form))
        install_log(level, form)
        reporter = Reporter(sys.stdout if options.json else None)
        server = make_server(settings, check_host(settings), reporter)
        serve(server, reporter, reload=AgentReloader(options.config, settings, server, reporter).reload)
    except TransportError as error:
        return _complain(error)
    # Whatever hangs on must not keep the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(DONE)


def _check(options: argparse.Namespace) -> int:
    try:
        settings = load(options.config)
        check_host(settings)
    except TransportError as error:
        return _complain(error)
    _print(json.dumps(asdict(settings), default=str, indent=2) if options.json else _summary(settings))
    return DONE


def _example(_: argparse.Namespace) -> int:
    _print(files("blast_transport.agent").joinpath("example.toml").read_text().rstrip())
    return DONE


def _bundle(options: argparse.Namespace) -> int:
    try:
        options.output.write_bytes(build_bundle())
        options.output.chmod(_PROGRAM_MODE)
    except OSError as error:
        sys.stderr.write(f"blast agent: {options.output} cannot be written: {sentence(error)}\n")
        return FAILED
    return DONE


def _summary(settings: Settings) -> str:
    agent, limits = settings.agent, settings.limits
    lines = [f"listens on {agent.listen} ({_access(settings)})"]
    lines.append(
        f"receives optical multicast at {agent.optical_address}"
        if agent.optical_address
        else "no optical_address: packet network only"
    )
    lines += [f"folder {folder.name}: files below {folder.path}" for folder in settings.folder]
    lines += [f"device {device.name}: {device.path} is overwritten" for device in settings.device]
    lines += [f"command {command.name}: {' '.join(command.run)}" for command in settings.command]
    if limits.memory_bytes:
        lines.append(f"up to {limits.memory_bytes} bytes of a session in memory")
    lines.append(f"up to {limits.sessions} sessions, {limits.connections} connections")
    return "\n".join(lines)


def _access(settings: Settings) -> str:
    access = settings.access
    if access.secret_file is not None:
        return f"clients that know the secret in {access.secret_file}"
    if access.client_ca is not None:
        return f"TLS, {len(access.client)} kinds of certificates under {access.client_ca}"
    return "every user of this machine"


def _complain(error: TransportError) -> int:
    sys.stderr.write(f"blast agent: {error}\n")
    return WRONG_INPUT if isinstance(error, SettingsError) else FAILED


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
