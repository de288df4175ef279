"""Claim: a broadcast leaves Spark's driver once, and is at 3 executors in <= 1/2 of Spark's time, at 7 in <= 1/3.

A standalone Spark cluster in the racks of the lab: master and driver in the first host, an executor of one core in each
other, links of hosts, packet core and light all of one rate, real agents, the real controller. The same job broadcasts
an array of random bytes; every executor deserialises it and adds up its CRC-32, which must be the driver's. The clock
runs from the call until the last executor has done so: the request to the controller, TL1, OpenFlow and the agents are
inside. Three ways: Spark's own (TorrentBroadcast), the plugin without a change to the job, and `blast_broadcast`. Each
application broadcasts several times, and its first does not count. Ways take turns, every second round backwards;
ratios are of the pairs of a round, with an interval of 90 % by ranks. Bytes are those that left the driver's host over
all its links, by their counters. All hosts share this machine's processors: the share that stayed idle is told, and
where it is small, a ratio is one of processor time. As root, with nothing else running:

    scripts/setup spark && mvn -q -f clients/java/pom.xml package -pl spark -am -DskipTests
    .venv/bin/python benchmarks/spark_broadcast.py
    .venv/bin/python benchmarks/spark_broadcast.py --executors 7 --no-compress --repeats 5 --json

Exit status 1 if an executor read other bytes, or what was to go by light did not; bars of time decide nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import machine
from median_interval import median_interval
from spark_bed.ways import ways_of_plugin
from transport_bed import script

from mininet_topos.spark.installation import find_plugin, find_spark
from mininet_topos.spark.plan import spark_plan
from mininet_topos.spark.room import SparkRoom, spark_room

MEGABYTES, REPEATS, EXECUTORS, RATE_MBPS, BROADCASTS = 100, 5, 3, 40, 3
TORRENT, PLUGIN, EXPLICIT = "torrent", "plugin", "explicit"
TITLES = {TORRENT: "Spark's own", PLUGIN: "the plugin", EXPLICIT: "blast_broadcast"}
COPIES_BARS = {PLUGIN: 1.15, EXPLICIT: 1.05}
TIME_BARS = {3: 1 / 2, 7: 1 / 3}
_JOB = Path(__file__).parent / "spark_bed" / "broadcast_job.py"


@dataclass(frozen=True)
class Application:
    """What one came to: medians of its broadcasts but the first."""

    seconds: float
    copies: float
    ways: list[str]
    equal: bool
    idle_share: float


def main() -> bool:
    """Measure and print; whether every executor read what was sent, by the way that it was to go."""
    args = _arguments()
    jar, spark = find_plugin(), find_spark()
    with spark_room(spark_plan(args.executors + 1, args.rate_mbps), spark) as room:
        measures = {way: partial(_measured, room, way, jar, args) for way in args.ways}
        results = script.in_turn(measures, args.repeats, 0)
    report = _report(args, results)
    print(json.dumps(report, indent=2) if args.json else "\n".join(_text(report)))
    return all(run.equal and _went(way, run) for way, runs in results.items() for run in runs)


def _went(way: str, run: Application) -> bool:
    return way == TORRENT or all(one == "optical" for one in run.ways)


def _measured(room: SparkRoom, way: str, jar: Path, args: argparse.Namespace) -> Application:
    size, cluster = args.megabytes * 1_000_000, room.cluster
    memory = f"{1024 + 6 * args.megabytes}m"
    conf = {
        "spark.broadcast.compress": str(args.compress).lower(),
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        **(room.plugin_conf(jar) if way == PLUGIN else {}),
    }
    asked = {
        "executors": args.executors,
        "broadcasts": args.broadcasts,
        "bytes": size,
        "explicit": way == EXPLICIT,
        "host": cluster.driver,
        "controller": room.plugin_conf(jar)["spark.blast.controller"],
        "secret": str(room.agents.places.secret),
        "agents": {cluster.address(host): f"{host}={room.agents.address(host)}" for host in cluster.executors},
    }
    run = cluster.submit(_JOB, [json.dumps(asked)], conf)
    told = [json.loads(line) for line in run.output.read_text().splitlines() if line.startswith("{")][1:]
    ways = (
        [one["way"] for one in told]
        if way == EXPLICIT
        else ways_of_plugin(next((run.output.parent / "events").iterdir()))
    )
    return Application(
        statistics.median(one["seconds"] for one in told),
        statistics.median(one["uplink_bytes"] for one in told) / size,
        ways,
        all(one["equal"] for one in told),
        run.idle,
    )


def _report(args: argparse.Namespace, results: Mapping[str, Sequence[Application]]) -> dict[str, Any]:
    own = results.get(TORRENT, [])
    return {
        "machine": machine.describe(),
        "megabytes": args.megabytes,
        "executors": args.executors,
        "rate_mbps": args.rate_mbps,
        "compress": args.compress,
        "rows": [_row(way, runs) for way, runs in results.items()],
        "ratios": {way: _ratio(runs, own) for way, runs in results.items() if own and way != TORRENT},
    }


def _row(way: str, runs: Sequence[Application]) -> dict[str, Any]:
    return {
        "way": way,
        "seconds": statistics.median(run.seconds for run in runs),
        "copies": statistics.median(run.copies for run in runs),
        "idle_share": statistics.median(run.idle_share for run in runs),
        "runs": [asdict(run) for run in runs],
    }


def _ratio(ours: Sequence[Application], own: Sequence[Application]) -> dict[str, Any]:
    pairs = [one.seconds / other.seconds for one, other in zip(ours, own, strict=True)]
    low, middle, high = median_interval(pairs)
    return {"ratio": middle, "interval": [low, high], "pairs": pairs}


def _text(report: Mapping[str, Any]) -> list[str]:
    copy = report["megabytes"] * 8 / report["rate_mbps"]
    lines = [
        report["machine"],
        f"{report['megabytes']} MB to {report['executors']} executors, every link {report['rate_mbps']:g} Mbit/s, "
        f"compression {'on' if report['compress'] else 'off'}: one copy on a link takes {copy:.2f} s",
        f"{'':<18}{'median':>10}{'least':>10}{'most':>10}{'uplink ÷ size':>15}{'bar':>7}{'idle CPU':>10}   went by",
    ]
    for row in report["rows"]:
        times = [run["seconds"] for run in row["runs"]]
        ways = sorted({way for run in row["runs"] for way in run["ways"]})
        bar = COPIES_BARS.get(row["way"])
        lines.append(
            f"{TITLES[row['way']]:<18}{row['seconds']:>8.2f} s{min(times):>8.2f} s{max(times):>8.2f} s"
            f"{row['copies']:>15.3f}{bar or '':>7}{row['idle_share']:>10.0%}   {', '.join(ways) or 'Spark'}"
        )
    bar = TIME_BARS.get(report["executors"])
    for way, ratio in report["ratios"].items():
        low, high = ratio["interval"]
        against = f", bar {bar:.3f}{'' if ratio['ratio'] <= bar else '  MISSED'}" if bar else ""
        lines.append(f"{TITLES[way]} ÷ Spark's own: {ratio['ratio']:.3f} ({low:.3f}-{high:.3f}){against}")
    return lines


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument("--executors", type=script.count, default=EXECUTORS, help=f"(default: {EXECUTORS})")
    parser.add_argument("--rate-mbps", type=script.count, default=RATE_MBPS, help=f"of every link ({RATE_MBPS})")
    parser.add_argument(
        "--broadcasts",
        type=script.count,
        default=BROADCASTS,
        help=f"of each application, the first not counted ({BROADCASTS})",
    )
    parser.add_argument("--no-compress", dest="compress", action="store_false", help="spark.broadcast.compress=false")
    parser.add_argument(
        "--ways", type=script.some_of(TITLES), default=list(TITLES), help=f"of {','.join(TITLES)} (default: all)"
    )
    args = parser.parse_args()
    if args.broadcasts < 2:
        parser.error("--broadcasts must be 2 or more: the first of an application does not count")
    return args


if __name__ == "__main__":
    script.run(main)
