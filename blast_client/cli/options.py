"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from blast_client.api.address import DEFAULT_ADDRESS, AddressError
from blast_client.api.tls import TlsSettings, read_token

if TYPE_CHECKING:
    from blast_client.api.client import Client

SYSTEM = "system"
_OUTPUT = "Output"
_NO_CONTROLLER = (
    f"no controller: $BLAST_CONTROLLER or --controller is empty; set it to HOST:PORT, or unset the variable to use "
    f"{DEFAULT_ADDRESS}"
)
_PROOFS = {
    "ca": f"CA certificates (PEM) for the controller's certificate; {SYSTEM}: the certificates of this machine",
    "cert": "certificate of this client (PEM)",
    "cert-key": "private key of --cert, if it is not in the same file",
    "server-name": "name in the controller's certificate, if it is not the host of the address",
    "token-file": "file with the login token",
}


def controller_options() -> argparse.ArgumentParser:
    """Return a parent parser with --controller, --json and the options of group Security."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--controller",
        metavar="ADDRESS",
        default=os.environ.get("BLAST_CONTROLLER", DEFAULT_ADDRESS),
        help="HOST:PORT of the controller, or of several with commas; empty: no controller (default: "
        f"$BLAST_CONTROLLER, else {DEFAULT_ADDRESS})",
    )
    output = options.add_argument_group(_OUTPUT)
    output.add_argument("--json", action="store_true", help="JSON instead of text")
    security = options.add_argument_group("Security", "TLS and login, if the controller requires them.")
    for name, description in _PROOFS.items():
        variable = variable_of(name)
        security.add_argument(
            f"--{name}",
            metavar="NAME" if name == "server-name" else "FILE",
            default=os.environ.get(variable) or None,
            help=f"{description} (default: ${variable})",
        )
    return options


def output_group(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group Output of a command, for further options."""
    return next(group for group in parser._action_groups if group.title == _OUTPUT)


def add_command(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    """Add the parser of a command that talks to the controller."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[controller_options()],
    )
    return parser


def connect(arguments: argparse.Namespace, timeout: float = 10.0) -> Client:
    """Return a client of the controller in the arguments; `timeout` in seconds bounds each answer.

    Raises AddressError, CredentialsError.
    """
    if not arguments.controller:
        raise AddressError(_NO_CONTROLLER)
    # Commands without a controller do not load it.
    from blast_client.api.client import Client

    token = read_token(Path(arguments.token_file)) if arguments.token_file else None
    return Client(arguments.controller, timeout, tls=tls_settings(arguments), token=token)


def variable_of(option: str) -> str:
    """Return the environment variable of an option: BLAST_CERT_KEY for cert-key."""
    return f"BLAST_{option.upper().replace('-', '_')}"


def tls_settings(arguments: argparse.Namespace) -> TlsSettings | None:
    """Return the TLS settings of the arguments, or None if they have none."""
    ca, cert, key = (Path(text) if text else None for text in (arguments.ca, arguments.cert, arguments.cert_key))
    if ca is None and cert is None and key is None and arguments.server_name is None:
        return None
    return TlsSettings(None if arguments.ca == SYSTEM else ca, cert, key, arguments.server_name)


def tls_settings_of_environment() -> TlsSettings | None:
    """Return the TLS settings of the environment variables, or None if none is set."""
    return tls_settings(
        argparse.Namespace(**{name.replace("-", "_"): os.environ.get(variable_of(name)) or None for name in _PROOFS})
    )
