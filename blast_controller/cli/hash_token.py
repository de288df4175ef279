"""`blast controller hash-token`: a line for the controller's token file."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from blast_controller.rpc.clients.identity import DEFAULT_TENANT, Identity
from blast_controller.rpc.clients.tokens import ROLES, InvalidTokenError, new_token, token_line

EXIT_DONE, EXIT_FAILED, EXIT_WRONG_INPUT = 0, 1, 2

_EXAMPLE = """\
example:
  blast controller hash-token --tenant physics --role user --new physics.token >> /etc/blast/tokens
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `hash-token`."""
    parser = commands.add_parser(
        "hash-token",
        help="create a line of the token file",
        description="Print the token-file line of a token from standard input, or of a new token (--new).",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tenant", default=DEFAULT_TENANT, help=f"tenant of the token (default: {DEFAULT_TENANT})")
    parser.add_argument("--role", choices=tuple(ROLES), required=True)
    parser.add_argument("--new", type=Path, metavar="FILE", help="new file for a generated token")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    token = sys.stdin.readline().strip() if args.new is None else new_token()
    try:
        line = token_line(token, Identity(args.tenant, ROLES[args.role]))
        if args.new is not None:
            _write_secret(args.new, token)
    except InvalidTokenError as error:
        return _complain(str(error), EXIT_WRONG_INPUT)
    except OSError as error:
        return _complain(f"{args.new} cannot be written: {error.strerror}.", EXIT_FAILED)
    sys.stdout.write(f"{line}\n")
    return EXIT_DONE


def _write_secret(path: Path, secret: str) -> None:
    """Write a file that only its owner may read and that was not there before. Raises OSError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{secret}\n")


def _complain(sentence: str, status: int) -> int:
    sys.stderr.write(f"blast controller hash-token: {sentence}\n")
    return status
