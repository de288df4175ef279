"""`blast lab demo`: options, the order of the scenes, the end."""

from __future__ import annotations

import argparse
import sys
import sysconfig
import tarfile
from dataclasses import replace
from pathlib import Path

from blast_client import Client
from blast_client.fabric_svg import fabric_svg
from mininet_topos.demo import changes, contention, iperf, iterations, latency, one_way, report
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.errors import LabError
from mininet_topos.lab import Lab
from mininet_topos.plan import preset

EXIT_DONE, EXIT_FAILED, EXIT_WRONG_INPUT = 0, 1, 2
LEAST_FILE = 8_000_000
FEWEST_RACKS, MOST_RACKS = contention.RACKS_NEEDED, 32

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
    parser.add_argument("--file", type=Path, help="what to send (default: an archive of Python's standard library)")
    parser.add_argument("--racks", type=int, default=8, help=f"{FEWEST_RACKS} to {MOST_RACKS} (default 8)")
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
        results = play(args)
    except (LabError, TimeoutError) as error:
        sys.stderr.write(f"blast lab demo: {error}\n")
        return EXIT_FAILED
    if args.json:
        report.write_json(results, args.json)
    return EXIT_DONE if results.holds else EXIT_FAILED


def _wrong_input(args: argparse.Namespace) -> str | None:
    if not FEWEST_RACKS <= args.racks <= MOST_RACKS:
        return f"--racks must be between {FEWEST_RACKS} and {MOST_RACKS}."
    if args.requests < 1 or args.iterations < 1:
        return "--requests and --iterations must be at least 1."
    if args.file is not None and not args.file.is_file():
        return f"{args.file} is not a file."
    if args.file is not None and args.file.stat().st_size == 0:
        return f"{args.file} is empty."
    outputs = [path for path in (args.json, args.svg) if path is not None]
    missing = next((path.parent for path in outputs if not path.parent.is_dir()), None)
    return f"the folder {missing} does not exist." if missing else None


def play(args: argparse.Namespace) -> Results:
    """Run every scene on one lab. Raises LabError."""
    plan = replace(preset("small"), racks=args.racks)
    with Lab(plan) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.say(f"Blast demo: {plan.summary}")
        stage.wait_devices()
        path = args.file or _standard_library(lab.directory / "stdlib.tar")
        _scenes(stage, args, path)
        stage.say("")
        for line in report.table(stage.results):
            stage.say(line)
        stage.say(f"\npicture of the lit fabric: {args.svg}")
        return stage.results


def _scenes(stage: Stage, args: argparse.Namespace, path: Path) -> None:
    latency.play(stage, args.requests)
    with Receivers(stage, stage.first_hosts()) as receivers:
        iterations.play(stage, receivers, path, args.iterations)
        contention.play(stage, receivers)
    changes.play(stage)
    iperf.play(stage)
    one_way.play(stage)
    _picture(stage, args.svg)


def _picture(stage: Stage, path: Path) -> None:
    stage.wait_dark()
    sender, *others = stage.first_hosts()[: iterations.MOST_RECEIVERS + 1]
    with stage.granted(stage.new_request(sender, others, 1_000_000, "picture")):
        path.write_text(fabric_svg(stage.client.fabric()))


def _standard_library(path: Path) -> Path:
    """A real file that every machine has: the Python standard library as one archive of at least 8 MB."""
    with tarfile.open(path, "w") as archive:
        for source in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
            if "site-packages" not in source.parts:
                archive.add(source, recursive=False)
            if archive.offset >= LEAST_FILE:
                break
    return path
