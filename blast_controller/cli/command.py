"""`blast controller`: run the daemon, check a configuration, print an example of one."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path

from blast_controller.cli import hash_token as token_command
from blast_controller.configuration.access_files import check_access_files
from blast_controller.configuration.config import Config, ConfigError, OpticalSwitchSection
from blast_controller.configuration.journal import IN_MEMORY
from blast_controller.configuration.reading import load
from blast_controller.configuration.switch_access import check_switch_files
from blast_controller.ops.logging import FORMATS, LEVELS
from blast_controller.process.daemon import ListenError, UnusableJournalError
from blast_controller.process.unix_process import ControllerProcess

log = logging.getLogger(__name__)

EXIT_DONE, EXIT_FAILED, EXIT_WRONG_INPUT = 0, 1, 2


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `controller` and its sub-commands."""
    parser = subparsers.add_parser("controller", help="run the controller or check its configuration")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    purpose = "Run the controller until SIGTERM or SIGINT; SIGHUP reloads the configuration file."
    run = _command(commands, "run", purpose, "--config blast.toml")
    _add_config(run)
    run.add_argument("--log-level", choices=LEVELS, help="log level; overrides log.level of the configuration file")
    run.add_argument("--log-format", choices=FORMATS, help="log format; overrides log.format of the configuration file")
    run.set_defaults(run=_run)
    check = _command(commands, "check", "Check a configuration file and print a summary.", "--config blast.toml")
    _add_config(check)
    check.add_argument("--json", action="store_true", help="print the complete configuration, with defaults, as JSON")
    check.set_defaults(run=_check)
    example = _command(commands, "example-config", "Print a commented example configuration.", "> blast.toml")
    example.set_defaults(run=_example)
    token_command.register(commands)


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, description: str, example: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=description.rstrip(".").lower(),
        description=description,
        epilog=f"example:\n  blast controller {name} {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="configuration file (TOML)")


def _run(args: argparse.Namespace) -> int:
    try:
        ControllerProcess(args.config, lambda config: _with_options(config, args)).run(_print_ready)
    except (ConfigError, ListenError, UnusableJournalError) as error:
        _complain(str(error))
        # Threads of a half-started daemon must not keep the process.
        _leave(EXIT_WRONG_INPUT if isinstance(error, ConfigError) else EXIT_FAILED)
    except Exception:
        # The process must end here: its threads would continue without a handler for signals.
        log.critical("the controller failed", exc_info=True)
        _leave(EXIT_FAILED)
    # The OpenFlow framework's threads do not end by themselves.
    _leave(EXIT_DONE)
    return EXIT_DONE


def _with_options(config: Config, args: argparse.Namespace) -> Config:
    given = {"level": args.log_level, "format": args.log_format}
    log = config.log.model_copy(update={key: value for key, value in given.items() if value is not None})
    return config.model_copy(update={"log": log})


def _print_ready(addresses: dict[str, str]) -> None:
    _print(json.dumps({"event": "ready", **addresses}))


def _check(args: argparse.Namespace) -> int:
    try:
        config = load(args.config)
        check_access_files(config)
        check_switch_files(config)
    except ConfigError as error:
        _complain(str(error))
        return EXIT_WRONG_INPUT
    _print(config.model_dump_json(indent=2) if args.json else _summary(config))
    if config.journal.in_memory:
        sys.stderr.write(f"blast controller: WARNING: {IN_MEMORY}\n")
    return EXIT_DONE


def _example(args: argparse.Namespace) -> int:
    _print(files("blast_controller").joinpath("example.toml").read_text().rstrip())
    return EXIT_DONE


def _summary(config: Config) -> str:
    ports = [len(rack.optical_ports) for rack in config.rack]
    sizes = Counter(len(splitter.outputs) for splitter in config.splitter)
    splitters = ", ".join(f"{count} x 1:{fan_out}" for fan_out, count in sorted(sizes.items())) or "none"
    datapaths = len({rack.datapath for rack in config.rack})
    switches = ", ".join(_switch(section) for section in config.optical_switch) or "none"
    lines = [
        f"{len(config.rack)} racks on {datapaths} datapaths, {sum(len(rack.hosts) for rack in config.rack)} hosts",
        f"{sum(ports)} optical ports at {config.fabric.optical_rate_gbps:g} Gbit/s",
        f"optical switches: {switches}",
        f"splitters: {splitters}",
        f"policy: {config.policy.name}",
        f"journal: {config.journal.path or 'in memory'}",
        f"Thrift on {config.controller.thrift} ({_access(config)})",
        f"HTTP {f'on {config.controller.http}' if config.controller.http else 'not served'}",
        f"OpenFlow on {config.controller.openflow} ({_switches(config)})",
        f"groups from {config.openflow.group_network}, rules at priority {config.openflow.priority}",
    ]
    return "\n".join(lines)


def _switch(section: OpticalSwitchSection) -> str:
    suffix = "" if section.light_check else ", the driver's default"
    light = f"light checked: {section.light_checked.replace('_', ' ')}{suffix}"
    return f"{section.name} ({section.driver}, {section.summary} at {section.place}, {light})"


def _access(config: Config) -> str:
    access = config.access
    if access is None:
        return "no authentication: every local client is an operator"
    credentials = [f"certificates of {access.client_ca}"] if access.client_ca else []
    credentials += [f"tokens in {access.token_file}"] if access.token_file else []
    return f"{'TLS' if access.certificate else 'no TLS'}, clients authenticated by {' or '.join(credentials)}"


def _switches(config: Config) -> str:
    if config.openflow.certificate is None:
        return "no TLS: any peer that connects can claim to be a ToR"
    ca = config.openflow.switch_ca
    return (
        f"TLS, ToRs authenticated by certificates of {ca}"
        if ca
        else ("TLS without client certificates: any peer that connects can claim to be a ToR")
    )


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _complain(sentence: str) -> None:
    sys.stderr.write(f"blast controller: {sentence}\n")


def _leave(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
