"""Claims, in uneven sites on this machine: when the link that the plan needs most halves in mid-transfer, the transfer
has >= 0.85 of the new optimum from 5 s later on; and when one host that passes data on is killed (-9), all others have
the file, whole and verified, and the report names that one and no other.

What happens, happens when the slowest receiver has a quarter of the file (`halved`) or half of it (`killed`). The rate
after a link has halved is that of the slowest receiver, from 5 s after until it has nine tenths of the file. As root:

    .venv/bin/python benchmarks/balanced_faults.py [--parts halved,killed] [--cases figure2:root,gridlab:amsterdam]

Exit status 1 where somebody did not come to the end that he must; rates are told with their bars, and decide nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import machine
from balanced_bed.bed import Bed, Seen, Sent, Transfer, Way, by, by_network
from balanced_bed.planning import Planned, dearest_path, interior, planned
from balanced_bed.rows import Row, as_table
from tqdm import tqdm
from transport_bed import script
from transport_bed.failures import RunFailed

from mininet_topos.sites import presets
from mininet_topos.sites.plan import SitesPlan, as_network_file

NETWORKS = {"figure2": presets.figure2, "gridlab": presets.gridlab, "homogeneous": presets.homogeneous}
_AFTER_SECONDS = 5.0
_BAR = 0.85


@dataclass(frozen=True)
class Case:
    """Sites, and who of them has the data."""

    network: str
    root: str

    @property
    def plan(self) -> SitesPlan:
        """The sites."""
        return NETWORKS[self.network]()

    @property
    def row(self) -> Row:
        """What a row begins with."""
        return {"network": self.network, "root": self.root}


@dataclass(frozen=True)
class Effort:
    """How much to measure, and by which carrier (`trees`, or one that knows no plans)."""

    seconds: float
    repeats: int
    carrier: str

    def size(self, rate: float) -> int:
        """Bytes of the file for this rate."""
        return int(rate * self.seconds / 8)

    def way(self, case: Case) -> Way:
        """The sender plans itself, and again when it has to."""
        return by_network(as_network_file(case.plan, case.root)) if self.carrier == "trees" else by(self.carrier)


def halved_row(case: Case, effort: Effort) -> Row:
    """The link that is needed most halves."""
    made = planned(case.plan.network(case.root), "exact")
    path, left, optimum = dearest_path(case.plan, case.root)
    row: Row = {**case.row, "path": " → ".join(path), "planned": made.rate, "new optimum": optimum / 1e6}
    rates, wrong = [], []
    for _ in range(effort.repeats):
        moments: list[float] = []

        def strike(transfer: Transfer, moments: list[float] = moments) -> None:
            moments.append(transfer.await_slowest(transfer.size / 4))
            transfer.bed.sites.set_rate(*path, left.rates[path])

        sent, faults = _struck(case, made, effort, strike)
        wrong += faults
        if sent is not None:
            wrong += [f"{host} has no file" for host in sent.failed]
            rates.append(rate_after(sent.seen, moments[0] + _AFTER_SECONDS, 0.9 * sent.bytes))
    found = statistics.median(rates) if rates else 0.0
    share = found / optimum
    return row | {"measured": found, "share": share, "met": share >= _BAR, "wrong": "; ".join(dict.fromkeys(wrong))}


def killed_row(case: Case, effort: Effort) -> Row:
    """The host that passes on most is killed."""
    made = planned(case.plan.network(case.root), "exact")
    victim = interior(made, case.root)
    wrong, seconds = [], []
    for _ in range(effort.repeats):

        def strike(transfer: Transfer) -> None:
            transfer.await_slowest(transfer.size / 2)
            os.kill(transfer.bed.agents.pids[victim], signal.SIGKILL)

        sent, faults = _struck(case, made, effort, strike)
        wrong += faults
        if sent is not None:
            seconds.append(sent.seconds)
            if sent.failed != (victim,):
                wrong.append(f"the report names {', '.join(sent.failed) or 'nobody'} as failed")
    time = statistics.median(seconds) if seconds else 0.0
    row: Row = {**case.row, "killed": victim, "planned": made.rate, "seconds": time}
    return row | {"met": not wrong, "wrong": "; ".join(dict.fromkeys(wrong))}


def _struck(
    case: Case, made: Planned, effort: Effort, strike: Callable[[Transfer], None]
) -> tuple[Sent | None, Sequence[str]]:
    """One transfer in sites of its own, for what happens to them stays."""
    with Bed(case.plan) as bed:
        try:
            sent = bed.send(case.root, effort.way(case), effort.size(made.rate), made.rate, strike)
        except RunFailed as failure:
            return None, [str(failure)]
        return sent, sent.wrong


def rate_after(seen: Sequence[Seen], since: float, until_bytes: float) -> float:
    """Bits per second of the slowest receiver, from a moment until it has so many bytes; 0 where that was over."""
    moments = [each for each in seen if each.seconds >= since and each.slowest <= until_bytes]
    if len(moments) < 2 or moments[-1].seconds == moments[0].seconds:
        return 0.0
    return (moments[-1].slowest - moments[0].slowest) * 8 / (moments[-1].seconds - moments[0].seconds)


PARTS: dict[str, tuple[str, Callable[[Case, Effort], Row]]] = {
    "halved": (f"The link that is needed most halves; rates from {_AFTER_SECONDS:g} s later on, in Mbit/s", halved_row),
    "killed": ("The host that passes on most is killed", killed_row),
}


def main() -> bool:
    """Measure and print; whether everybody came to the end that he must."""
    args = _arguments()
    effort = Effort(args.seconds, args.repeats, args.carrier)
    results: dict[str, list[Row]] = {part: [] for part in args.parts}
    with tqdm(total=len(args.parts) * len(args.cases), unit="run", disable=None, file=sys.stderr) as bar:
        for part, case in _runs(args):
            bar.set_postfix_str(f"{part}, {case.network} from {case.root}")
            results[part].append(PARTS[part][1](case, effort))
            bar.update()
    if args.json:
        print(json.dumps({"machine": machine.describe(), **results}, indent=2))
    else:
        print(f"{machine.describe()}\nby {args.carrier}")
        for part, rows in results.items():
            print(f"\n{PARTS[part][0]}\n{as_table(rows)}")
    return not any(row["wrong"] for rows in results.values() for row in rows)


def _runs(args: argparse.Namespace) -> Iterator[tuple[str, Case]]:
    return ((part, case) for part in args.parts for case in args.cases)


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, megabytes=200, repeats=1)
    parser.add_argument("--parts", type=script.some_of(PARTS), default=list(PARTS), help="(default: halved,killed)")
    cases = "figure2:root,gridlab:amsterdam"
    parser.add_argument("--cases", type=_cases, default=_cases(cases), help=f"NETWORK:ROOT,… (default: {cases})")
    parser.add_argument("--seconds", type=script.count, default=30, help="of data at the planned rate (default: 30)")
    parser.add_argument("--carrier", choices=("trees", "pipeline", "unicast"), default="trees")
    return parser.parse_args()


def _cases(text: str) -> list[Case]:
    cases = [Case(network, root) for network, _, root in (part.partition(":") for part in text.split(","))]
    for case in cases:
        if case.network not in NETWORKS or case.root not in case.plan.hosts:
            raise argparse.ArgumentTypeError(
                f"{case.network}:{case.root} is no network of {', '.join(NETWORKS)} with a host of it"
            )
    return cases


if __name__ == "__main__":
    script.run(main)
