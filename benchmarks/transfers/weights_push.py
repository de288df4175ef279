"""Claim: new weights reach seven workers in <= 1/3 of the time of gloo's broadcast, and of Ray's, on the same links.

Sender and workers are network namespaces, each with one link of the given rate to a non-blocking packet network and one
to the lab's OCS. Every tool pushes the same float32 layers from the sender's memory into the memory of running
processes, which have received a megabyte before. The clock runs from the sender's call until the last worker has read
every byte and computed the CRC-32, which must equal the sender's. For the optical transport, it includes the request to
the real controller, its decision, TL1, OpenFlow and the 14 ms of the OCS. The tools alternate; ratios are of the pairs
of a round, with a 90 % interval by ranks. All hosts share the processors of this machine: with a small idle share, a
ratio compares processor time. gloo uses one call, like Blast and Ray, or one for each layer of 16 MB, which its tree
can overlap. Ray's pull timeout is raised, because by default Ray sends everything twice on these links. As root, on an
idle machine (half an hour each; 1000 MB need 16 GB of memory):

    apt-get install -y --no-install-recommends mininet python3-torch        # gloo, for Debian's own python3
    python3 -m venv ray && ray/bin/pip install ray numpy
    .venv/bin/python benchmarks/transfers/weights_push.py --ray ray
    .venv/bin/python benchmarks/transfers/weights_push.py --ways light,gloo --megabytes 32 --workers 3 --repeats 1

Exit status 1 if a push failed or delivered wrong bytes; times do not change the exit status.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.median_interval import median_interval
from benchmarks.transfers.bed import contents, script
from benchmarks.transfers.bed.bed import Plan
from benchmarks.transfers.bed.shape import Shape
from benchmarks.transfers.weights_bed.granting import Granting
from benchmarks.transfers.weights_bed.ways import TOOLS, Pushed, Setting, pushed

MEGABYTES, REPEATS, WORKERS, RATE_MBPS = 256, 5, 7, 200
OURS, PEERS = ("light", "pipeline"), ("gloo", "gloo-layers", "ray")
BAR = 1 / 3
_START_SECONDS = 60.0


def main() -> bool:
    """Measure and print; return whether every push delivered the correct bytes."""
    args = _arguments()
    results = _measured(args)
    report = {
        **{name: getattr(args, name) for name in ("megabytes", "workers", "rate_mbps")},
        "rows": [_row(name, runs) for name, runs in results.items()],
        "ratios": _ratios(results),
    }
    machine.show(args.json, report, _text(report))
    return not any(run.failure for runs in results.values() for run in runs)


def _measured(args: argparse.Namespace) -> dict[str, list[Pushed]]:
    size, rate = args.megabytes * 1_000_000, args.rate_mbps
    # 1.5 times the time of one copy after another.
    limit = _START_SECONDS + 1.5 * args.workers * size * 8 / (rate * 1e6)
    # The workers' copies, the file, the sender's arrays, and an object store.
    contents.require_room(size, args.workers + 3)
    with script.bed_and_file(Plan(args.workers, Shape(rate)), size) as (bed, source), Granting(bed) as controller:
        setting = Setting(controller.thrift, args.torch, args.ray / "bin" / "python")
        measures = {name: partial(pushed, TOOLS[name](setting), bed, source, limit) for name in args.ways}
        return script.alternate(measures, args.repeats, args.discard)


def _row(name: str, runs: Sequence[Pushed]) -> dict[str, Any]:
    good = [run for run in runs if not run.failure]
    row: dict[str, Any] = {"way": name, "title": TOOLS[name].title, "runs": [asdict(run) for run in runs]}
    row["failures"] = [run.failure for run in runs if run.failure]
    if good:
        for column in ("seconds", "uplink_copies", "idle_share"):
            row[column] = statistics.median(getattr(run, column) for run in good)
    return row


def _ratios(results: Mapping[str, Sequence[Pushed]]) -> list[dict[str, Any]]:
    """Return the ratios of Blast to each other tool, from the rounds in which neither failed."""
    found = []
    for ours in filter(results.__contains__, OURS):
        for peer in filter(results.__contains__, PEERS):
            pairs = zip(results[ours], results[peer], strict=True)
            ratios = [one.seconds / other.seconds for one, other in pairs if not one.failure and not other.failure]
            if ratios:
                low, middle, high = median_interval(ratios)
                found.append({"ours": ours, "peer": peer, "ratio": middle, "interval": [low, high], "pairs": ratios})
    return found


def _text(report: Mapping[str, Any]) -> list[str]:
    copy = report["megabytes"] * 8 / report["rate_mbps"]
    lines = [
        f"{report['megabytes']} MB to {report['workers']} workers, every link {report['rate_mbps']:g} Mbit/s: one copy"
        f" on a link takes {copy:.2f} s",
        f"{'':<34}{'median':>9}{'min':>9}{'max':>9}   {'÷ one copy':>10}{'uplink ÷ size':>15}{'idle CPU':>10}",
    ]
    for row in report["rows"]:
        times = [run["seconds"] for run in row["runs"] if not run["failure"]]
        if times:
            lines.append(
                f"{row['title']:<34}{row['seconds']:>7.2f} s{min(times):>7.2f} s{max(times):>7.2f} s"
                f"   {row['seconds'] / copy:>10.2f}{row['uplink_copies']:>15.2f}{row['idle_share']:>10.0%}"
            )
        lines += [f"{row['title']:<34}failed: {sentence}" for sentence in row["failures"]]
    return [*lines, "", *map(_verdict, report["ratios"])]


def _verdict(ratio: Mapping[str, Any]) -> str:
    low, high = ratio["interval"]
    text = f"{TOOLS[ratio['ours']].title} ÷ {TOOLS[ratio['peer']].title}: {ratio['ratio']:.3f} ({low:.3f}-{high:.3f})"
    if ratio["ours"] != "light":
        return text
    return f"{text}, bar {BAR:.3f}{'' if ratio['ratio'] <= BAR else '  MISSED'}"


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument("--workers", type=script.count, default=WORKERS, help=f"number of workers (default: {WORKERS})")
    rate = f"rate of every link in Mbit/s (default: {RATE_MBPS})"
    parser.add_argument("--rate-mbps", type=script.count, default=RATE_MBPS, help=rate)
    parser.add_argument("--discard", type=int, choices=(0, 1), default=1, help="rounds that do not count (default: 1)")
    tools = f"tools, separated by commas: {','.join(TOOLS)} (default: all)"
    parser.add_argument("--ways", type=script.some_of(TOOLS), default=list(TOOLS), help=tools)
    torch = "interpreter with PyTorch (default: %(default)s)"
    parser.add_argument("--torch", type=Path, default=Path("/usr/bin/python3"), metavar="PYTHON", help=torch)
    ray = "virtual environment with Ray (default: %(default)s)"
    parser.add_argument("--ray", type=Path, default=Path("ray"), metavar="FOLDER", help=ray)
    args = parser.parse_args()
    args.ray = args.ray.absolute()
    setting = Setting("", args.torch, args.ray / "bin" / "python")
    if missing := [lack for name in args.ways if (lack := TOOLS[name](setting).missing)]:
        parser.error("; ".join([*dict.fromkeys(missing), "or choose other --ways"]))
    return args


if __name__ == "__main__":
    script.run(main)
