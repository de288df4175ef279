"""`blast lab demo`: its options and exit status."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from thrift.Thrift import TException

from blast_client.api.calls import ControllerUnreachableError
from blast_client.cli.failures import explain_failure
from blast_transport.base.errors import TransportError
from mininet_topos.demo.groups import max_groups
from mininet_topos.demo.settings import MIN_FILE, demo_plan
from mininet_topos.kernel.errors import LabError
from mininet_topos.kernel.netdev import require_root
from mininet_topos.kernel.termination import end_in_order

EXIT_DONE, EXIT_FAILED, EXIT_WRONG_INPUT, EXIT_ENDED = 0, 1, 2, 143
MIN_RACKS, MAX_RACKS = 6, 32

_EXAMPLE = """examples:
  blast lab demo
  blast lab demo --file model.bin --racks 8 --json demo.json --svg fabric.svg
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo`."""
    parser = subparsers.add_parser(
        "demo",
        help="run the demo: requests, transfers, contention, changes",
        description="Start a lab with a controller and run seven scenes, each measured and checked. Needs root.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--file", type=Path, help="file to send, at least 8 MB (default: the Python standard library)")
    parser.add_argument(
        "--racks", type=int, default=8, help=f"number of racks, {MIN_RACKS} to {MAX_RACKS} (default: 8)"
    )
    parser.add_argument("--requests", type=int, default=100, help="number of timed requests (default: 100)")
    parser.add_argument("--iterations", type=int, default=10, help="iterations of the job (default: 10)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="output file for all results")
    parser.add_argument(
        "--svg",
        type=Path,
        default=Path("blast-demo.svg"),
        metavar="OUT",
        help="picture of the lit fabric (default: blast-demo.svg)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo; return 0 if every check passed, 1 if a check failed or the lab failed, 2 for wrong input."""
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
    # Mininet is imported late: the command line must work where it is not installed.
    from mininet_topos.demo.play import play, write_json

    end_in_order(EXIT_ENDED)
    results = play(args)
    if args.json:
        write_json(results, args.json)
    return results.holds


def _wrong_input(args: argparse.Namespace) -> str | None:
    if not MIN_RACKS <= args.racks <= MAX_RACKS:
        return f"--racks must be between {MIN_RACKS} and {MAX_RACKS}."
    if args.requests < 1 or args.iterations < 1:
        return "--requests and --iterations must be at least 1."
    # One further group is requested first, without measurement.
    if args.requests >= (limit := max_groups(demo_plan(args.racks))):
        groups = f"{args.racks} racks have no more distinct groups"
        return f"--requests must be below {limit}: {groups}. Use more --racks or fewer --requests."
    if args.file is not None and not args.file.is_file():
        return f"{args.file} is not a file. Name an existing one."
    if args.file is not None and args.file.stat().st_size < MIN_FILE:
        return f"{args.file} has less than {MIN_FILE / 1e6:g} MB, too little to measure a rate. Use a larger file."
    outputs = [path for path in (args.json, args.svg) if path is not None]
    missing = next((path.parent for path in outputs if not path.parent.is_dir()), None)
    return f"the folder {missing} does not exist. Create it or name another one." if missing else None
