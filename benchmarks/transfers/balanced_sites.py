"""Claims about balanced multicast between emulated sites with shaped links.

- every method reaches >= 0.9 of its planned rate from every root, and methods rank as planned if their plans differ by
  more than a tenth;
- the paper's Figure 2, at ten times its rates, yields about 75 Mbit/s unshaped (within 15 %), and 90 with the paper's
  method and with the exact one (within 8 %);
- on equal links, trees reach >= 0.95 of the pipeline;
- clusters of 1 to 8 nodes reach >= 0.9 of min(k * NIC, wide-area link);
- over a distance at which one connection fills less than half of a path, trees open several and reach >= 0.9;
- when the most important link halves, the transfer reaches >= 0.85 of the new optimum 5 s later;
- when the host that forwards most is killed (-9), all others have the verified file, and the report names only it.

A transfer sends the data of --seconds at the planned rate, at most --megabytes. A fault strikes when the slowest
receiver has a quarter (`halved`) or half (`killed`) of the file. As root:

    .venv/bin/python benchmarks/transfers/balanced_sites.py
    .venv/bin/python benchmarks/transfers/balanced_sites.py --parts figure2,homogeneous
    .venv/bin/python benchmarks/transfers/balanced_sites.py --parts gridlab,clusters --csv FOLDER  # `blast figures`
    .venv/bin/python benchmarks/transfers/balanced_sites.py --parts halved,killed --seconds 30

Exit status 1 if a receiver lacks its file or the report is wrong; rates do not change the exit status.
"""

from __future__ import annotations

import csv
import os
import signal
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks import machine
from benchmarks.transfers.balanced_bed.bed import Bed, Seen, Sent, Transfer, Way, by, by_network, by_trees
from benchmarks.transfers.balanced_bed.planning import (
    METHODS,
    Planned,
    dearest_path,
    interior,
    planned,
    planned_clusters,
)
from benchmarks.transfers.balanced_bed.unshaped import send_unshaped
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.failures import RunFailedError
from blast_sim.base.options import positive
from mininet_topos.sites import presets
from mininet_topos.sites.plan import SitesPlan, as_network_file

Row = dict[str, Any]
UNSHAPED = "fpfr"
"""The method that is sent over plain TCP, because the transport `trees` would shape it."""
FIGURE_2_BARS = {"fpfr": 0.15, "balanced": 0.08, "exact": 0.08}
FAULT_CASES: tuple[tuple[Callable[[], SitesPlan], str], ...] = (
    (presets.figure2, "root"),
    (presets.gridlab, "amsterdam"),
)
AFTER_SECONDS, AFTER_BAR = 5.0, 0.85
COLUMNS = {
    "gridlab": ("root", "method", "planned", "measured"),
    "clusters": ("clusters", "nodes", "planned", "measured"),
}
"""Columns of the CSV files; rates in bits of data per second."""


@dataclass(frozen=True)
class Effort:
    """The amount of measurement, and the factor of the rates of gridlab and clusters."""

    seconds: float
    max_bytes: int
    repeats: int
    scale: float
    report: Callable[[str], None]

    def size(self, rate: float) -> int:
        """Return the bytes of the file for this rate."""
        return max(2_000_000, min(self.max_bytes, int(rate * self.seconds / 8)))

    def send(self, bed: Bed, root: str, method: str, plan: Planned) -> Row:
        """Send according to a plan."""
        if method == UNSHAPED:
            return self.measured(lambda: send_unshaped(bed, root, plan, self.size(plan.rate)), plan.rate)
        return self.send_by(bed, root, by_trees(plan), plan.rate)

    def send_by(self, bed: Bed, root: str, way: Way, rate: float) -> Row:
        """Send with Blast at this planned rate."""
        return self.measured(lambda: bed.send(root, way, self.size(rate), rate), rate)

    def measured(self, send: Callable[[], Sent], rate: float) -> Row:
        """Return the medians of some transfers, and their faults."""
        sent, wrong = [], []
        for _ in range(self.repeats):
            try:
                sent.append(send())
                wrong += [*sent[-1].wrong, *(f"{host} has no file" for host in sent[-1].failed)]
            except RunFailedError as failure:
                wrong.append(str(failure))
        found = statistics.median(each.rate for each in sent) if sent else 0.0
        cpu = statistics.median(each.cpu_share for each in sent) if sent else 0.0
        row: Row = {"planned": rate, "measured": found, "share": found / rate, "cpu": cpu}
        return row | {"megabytes": self.size(rate) / 1e6, "wrong": "; ".join(dict.fromkeys(wrong))}


def far_rows(effort: Effort) -> Iterator[Row]:
    """Compare one connection over a distance with the several connections of trees."""
    plan = presets.far(presets.homogeneous(2, 80.0))
    made = planned(plan.network("h1"), "exact")
    with Bed(plan) as bed:
        for transport, way in (("pipeline", by("pipeline")), ("trees", by_trees(made))):
            effort.report(f"far: {transport}")
            row = effort.send_by(bed, "h1", way, made.rate)
            yield {"transport": transport, **row, "met": transport != "trees" or row["share"] >= 0.9}


def figure2_rows(effort: Effort) -> Iterator[Row]:
    """Measure the paper's example."""
    plan = presets.figure2()
    with Bed(plan) as bed:
        for method, bar in FIGURE_2_BARS.items():
            effort.report(f"figure 2: {method}")
            row = effort.send(bed, "root", method, planned(plan.network("root"), method))
            yield {"method": method, **row, "bar": bar, "met": abs(row["share"] - 1) <= bar and not row["wrong"]}


def gridlab_rows(effort: Effort) -> Iterator[Row]:
    """Measure every root and every method."""
    plan = presets.gridlab().scaled(effort.scale)
    with Bed(plan) as bed:
        for root in plan.hosts:
            rows = []
            for method in METHODS:
                effort.report(f"gridlab: {method} from {root}")
                row = effort.send(bed, root, method, planned(plan.network(root), method))
                rows.append({"root": root, "method": method, **row, "met": row["share"] >= 0.9 and not row["wrong"]})
            ranked = in_order(rows)
            yield from ({**row, "as ranked": ranked} for row in rows)


def in_order(rows: Sequence[Row]) -> bool:
    """Return whether methods whose plans differ by more than a tenth rank as planned."""
    return all(
        (one["measured"] > other["measured"]) == (one["planned"] > other["planned"])
        for one, other in combinations(rows, 2)
        if max(one["planned"], other["planned"]) > 1.1 * min(one["planned"], other["planned"])
    )


def homogeneous_rows(effort: Effort) -> Iterator[Row]:
    """Compare trees with the pipeline on equal links."""
    plan = presets.homogeneous()
    with Bed(plan) as bed:
        made = planned(plan.network("h1"), "exact")
        effort.report("homogeneous: pipeline")
        pipeline = effort.send_by(bed, "h1", by("pipeline"), made.rate)
        yield {"transport": "pipeline", **pipeline, "of the pipeline": 1.0, "met": True}
        effort.report("homogeneous: trees")
        row = effort.send(bed, "h1", "exact", made)
        ratio = row["measured"] / pipeline["measured"] if pipeline["measured"] else 0.0
        yield {"transport": "trees", **row, "of the pipeline": ratio, "met": ratio >= 0.95}


def cluster_rows(effort: Effort) -> Iterator[Row]:
    """Measure Figure 8 at a tenth of its rates, times `scale`."""
    for clusters in (2, 3):
        for nodes in range(1, 9):
            effort.report(f"{clusters} clusters of {nodes}")
            plan = presets.clusters(clusters, nodes).scaled(effort.scale)
            with Bed(plan) as bed:
                row = effort.send(bed, plan.hosts[0], "exact", planned_clusters(clusters, nodes, effort.scale))
            yield {"clusters": clusters, "nodes": nodes, **row, "met": row["share"] >= 0.9 and not row["wrong"]}


def halved_rows(effort: Effort) -> Iterator[Row]:
    """Halve the most important link during a transfer."""
    for preset, root in FAULT_CASES:
        plan = preset()
        path, left, optimum = dearest_path(plan, root)
        sent, moment, wrong = _struck(plan, root, effort, 1 / 4, partial(_halve, path, left.rates[path]))
        rate = rate_after(sent.seen, moment + AFTER_SECONDS, 0.9 * sent.bytes) if sent else 0.0
        wrong += [f"{host} has no file" for host in sent.failed] if sent else []
        row: Row = {"root": root, "path": " → ".join(path), "new optimum": optimum / 1e6, "measured": rate}
        yield row | {"share": rate / optimum, "met": rate >= AFTER_BAR * optimum, "wrong": "; ".join(wrong)}


def killed_rows(effort: Effort) -> Iterator[Row]:
    """Kill the host that forwards most during a transfer."""
    for preset, root in FAULT_CASES:
        plan = preset()
        victim = interior(planned(plan.network(root), "exact"), root)
        sent, _, wrong = _struck(plan, root, effort, 1 / 2, partial(_kill, victim))
        if sent and sent.failed != (victim,):
            wrong.append(f"the report names {', '.join(sent.failed) or 'no host'} as failed")
        yield {
            "root": root,
            "killed": victim,
            "seconds": sent.seconds if sent else 0.0,
            "met": not wrong,
            "wrong": "; ".join(wrong),
        }


def _halve(path: tuple[str, str], rate: float, transfer: Transfer) -> None:
    transfer.bed.sites.set_rate(*path, rate)


def _kill(host: str, transfer: Transfer) -> None:
    os.kill(transfer.bed.agents.pids[host], signal.SIGKILL)


def _struck(
    plan: SitesPlan, root: str, effort: Effort, share: float, act: Callable[[Transfer], None]
) -> tuple[Sent | None, float, list[str]]:
    """Run a transfer in new sites, and act when the slowest receiver has this share; return also the time of that."""
    moments = [0.0]

    def strike(transfer: Transfer) -> None:
        moments.append(transfer.await_slowest(transfer.size * share))
        act(transfer)

    effort.report(f"fault, from {root}")
    rate = planned(plan.network(root), "exact").rate
    with Bed(plan) as bed:
        try:
            way = by_network(as_network_file(plan, root))
            sent = bed.send(root, way, int(rate * effort.seconds / 8), rate, strike)
        except RunFailedError as failure:
            return None, 0.0, [str(failure)]
        return sent, moments[-1], list(sent.wrong)


def rate_after(seen: Sequence[Seen], since: float, until_bytes: float) -> float:
    """Return the rate of the slowest receiver (bit/s) from a moment until it has this number of bytes."""
    moments = [each for each in seen if each.seconds >= since and each.slowest <= until_bytes]
    if len(moments) < 2 or moments[-1].seconds == moments[0].seconds:
        return 0.0
    return (moments[-1].slowest - moments[0].slowest) * 8 / (moments[-1].seconds - moments[0].seconds)


PARTS: dict[str, tuple[str, Callable[[Effort], Iterator[Row]]]] = {
    "far": ("Two sites, 16 ms there and back, windows of 64 KiB", far_rows),
    "figure2": ("The paper's Figure 2, times 10 Mbit/s", figure2_rows),
    "gridlab": ("Eight sites, every root (the shape of the paper's Figure 7)", gridlab_rows),
    "homogeneous": ("Eight equal sites", homogeneous_rows),
    "clusters": ("Clusters (a tenth of the paper's Figure 8)", cluster_rows),
    "halved": (f"The most important link halves; rates from {AFTER_SECONDS:g} s later on", halved_rows),
    "killed": ("The host that forwards most is killed", killed_rows),
}


def main() -> bool:
    """Measure and print; return whether every receiver has its file."""
    parser = script.parser(__doc__, megabytes=200, repeats=1)
    every = ",".join(PARTS)
    parser.add_argument(
        "--parts", type=script.some_of(PARTS), default=list(PARTS), help=f"parts to run (default: {every})"
    )
    seconds = "duration of a transfer at its planned rate in s (default: 20)"
    parser.add_argument("--seconds", type=script.count, default=20, help=seconds)
    scale = "factor of the rates of gridlab and clusters, for a slow machine (default: 1)"
    parser.add_argument("--scale", type=positive, default=1.0, help=scale)
    folder = "write gridlab.csv and clusters.csv there, at scale 1"
    parser.add_argument("--csv", metavar="FOLDER", type=Path, help=folder)
    args = parser.parse_args()
    results: dict[str, list[Row]] = {}
    with tqdm(unit="run", disable=None) as bar:
        size, report = args.megabytes * 1_000_000, partial(script.report, bar)
        effort = Effort(args.seconds, size, args.repeats, args.scale, report)
        for part in args.parts:
            results[part] = list(PARTS[part][1](effort))
            if args.csv is not None and part in COLUMNS:
                write_csv(args.csv / f"{part}.csv", COLUMNS[part], results[part], args.scale)
    lines = ["planned and measured in Mbit/s; cpu: of all cores"]
    for part, rows in results.items():
        lines.append(f"\n{PARTS[part][0]}\n{machine.as_table([_in_mbps(row) for row in rows])}")
    machine.show(args.json, results, lines)
    return not any(row["wrong"] for rows in results.values() for row in rows)


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Row], scale: float) -> None:
    """Write these columns, with rates at scale 1, because the figures show the unscaled network."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({**row, "planned": row["planned"] / scale, "measured": row["measured"] / scale})


def _in_mbps(row: Row) -> Row:
    return {name: f"{value / 1e6:.2f}" if name in {"planned", "measured"} else value for name, value in row.items()}


if __name__ == "__main__":
    script.run(main)
