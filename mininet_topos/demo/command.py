"""`blast lab demo`: its options, and how it ends."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from thrift.Thrift import TException

from blast_client.calls import ControllerUnreachableError
from blast_client.failures import explain_failure
from blast_transport.base.errors import TransportError
from mininet_topos.demo.groups import max_groups
from mininet_topos.demo.settings import MIN_FILE, demo_plan
from mininet_topos.ending import end_in_order
from mininet_topos.errors import LabError
from mininet_topos.netdev import require_root

EXIT_DONE, EXIT_FAILED, EXIT_WRONG_INPUT, EXIT_ENDED = 0, 1, 2, 143
FEWEST_RACKS, MAX_RACKS = 6, 32

_EXAMPLE = """examples:
  blast lab demo
  blast lab demo --file model.bin --racks 8 --json demo.json --svg fabric.svg
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo`."""
    parser = subparsers.add_parser(
        "demo",
        help="play the whole chain: requests, light, transfers, contention, changes",
        description="Start a lab with a controller and play seven scenes, each measured and checked; needs root.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--file", type=Path, help="what to send, 8 MB or more (default: Python's own library)")
    parser.add_argument("--racks", type=int, default=8, help=f"{FEWEST_RACKS} to {MAX_RACKS} (default 8)")
    parser.add_argument("--requests", type=int, default=100, help="requests to time (default 100)")
    parser.add_argument("--iterations", type=int, default=10, help="iterations of the job (default 10)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every figure to this file")
    parser.add_argument(
        "--svg", type=Path, default=Path("blast-demo.svg"), metavar="OUT", help="where the picture goes"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play it; 0 when every check held, 1 when one did not or the lab failed, 2 for wrong input."""
    if (sentence := _wrong_input(args)) is not None:
        sys.stderr.write(f"blast lab demo: {sentence}\n")
        return EXIT_WRONG_INPUT
    try:
        return EXIT_DONE if _played(args) else EXIT_FAILED
    except (LabError, TransportError, OSError) as error:
        sentence = str(error)
    except (TException, ControllerUnreachableError) as error:
        sentence = explain_failure(error)[1]
    sys.stderr.write(f"blast lab demo: {sentence}\n")
    return EXIT_FAILED


def _played(args: argparse.Namespace) -> bool:
    require_root()
    # Mininet is loaded only now: the command line must work where it is not installed.
    from mininet_topos.demo.play import play, write_json

    end_in_order(EXIT_ENDED)
    results = play(args)
    if args.json:
        write_json(results, args.json)
    return results.holds


def _wrong_input(args: argparse.Namespace) -> str | None:
    if not FEWEST_RACKS <= args.racks <= MAX_RACKS:
        return f"--racks must be between {FEWEST_RACKS} and {MAX_RACKS}."
    if args.requests < 1 or args.iterations < 1:
        return "--requests and --iterations must be at least 1."
    # One more is asked for first, unmeasured.
    if args.requests >= (most := max_groups(demo_plan(args.racks))):
        return f"--requests must be below {most}: with {args.racks} racks there are no more different groups."
    if args.file is not None and not args.file.is_file():
        return f"{args.file} is not a file."
    if args.file is not None and args.file.stat().st_size < MIN_FILE:
        return f"{args.file} has less than {MIN_FILE / 1e6:g} MB: too short a transfer to tell its rate."
    outputs = [path for path in (args.json, args.svg) if path is not None]
    missing = next((path.parent for path in outputs if not path.parent.is_dir()), None)
    return f"the folder {missing} does not exist." if missing else None
