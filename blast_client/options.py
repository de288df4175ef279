"""Options that several commands share, and argument types that explain themselves when they refuse."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from blast_client.address import DEFAULT_ADDRESS, BadAddress
from blast_client.client import Client
from blast_client.tls import TlsSettings, read_token

Value = TypeVar("Value")

SYSTEM = "system"
_NO_CONTROLLER = (
    f"$BLAST_CONTROLLER or --controller is empty, which says that there is no controller: name one as HOST:PORT, or "
    f"unset the variable to ask {DEFAULT_ADDRESS}"
)
_PROOFS = {
    "ca": f"certificates that the controller's is checked against; {SYSTEM}: those that this machine trusts",
    "cert": "this client's certificate",
    "cert-key": "its private key, unless that is in the same file",
    "server-name": "name in the controller's certificate, where its address is another",
    "token-file": "file with the token to log in with",
}


def controller_options() -> argparse.ArgumentParser:
    """A parent parser with --controller, --json and what proves who is who."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--controller",
        metavar="ADDRESS",
        default=os.environ.get("BLAST_CONTROLLER", DEFAULT_ADDRESS),
        help="HOST:PORT of the controller, several with commas; empty: there is none (default: $BLAST_CONTROLLER, "
        f"else {DEFAULT_ADDRESS})",
    )
    options.add_argument("--json", action="store_true", help="print JSON")
    credentials = options.add_argument_group(
        "credentials", "For a controller that speaks TLS or wants to know who is calling."
    )
    for name, what in _PROOFS.items():
        variable = variable_of(name)
        credentials.add_argument(
            f"--{name}",
            metavar="NAME" if name == "server-name" else "FILE",
            default=os.environ.get(variable) or None,
            help=f"{what} (default: ${variable})",
        )
    return options


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
    """A client of the controller that the arguments name; `timeout` in seconds for each answer.

    Raises BadAddress, BadCredentials.
    """
    if not arguments.controller:
        raise BadAddress(_NO_CONTROLLER)
    token = read_token(Path(arguments.token_file)) if arguments.token_file else None
    return Client(arguments.controller, timeout, tls=tls_settings(arguments), token=token)


def variable_of(option: str) -> str:
    """The environment variable that stands for an option: BLAST_CERT_KEY for cert-key."""
    return f"BLAST_{option.upper().replace('-', '_')}"


def tls_settings(arguments: argparse.Namespace) -> TlsSettings | None:
    """What the arguments say about TLS; None where they say nothing."""
    ca, cert, key = (Path(text) if text else None for text in (arguments.ca, arguments.cert, arguments.cert_key))
    if ca is None and cert is None and key is None and arguments.server_name is None:
        return None
    return TlsSettings(None if arguments.ca == SYSTEM else ca, cert, key, arguments.server_name)


def tls_settings_of_environment() -> TlsSettings | None:
    """What the environment says about TLS, as a command finds it; None where it says nothing."""
    return tls_settings(
        argparse.Namespace(**{name.replace("-", "_"): os.environ.get(variable_of(name)) or None for name in _PROOFS})
    )


def checked(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """Make a parser that raises ValueError an argument type whose sentence reaches the user."""

    def argument_type(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return argument_type


def names(text: str) -> list[str]:
    """Read a list of names, separated by commas.

    Raises ValueError.
    """
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ValueError(f"{text!r} is no list of names: write them with commas between, for example h2,h3")
    return found
