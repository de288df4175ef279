"""Claim: a broadcast leaves Spark's driver once, and reaches 3 executors in <= 1/2 of Spark's time, 7 in <= 1/3.

A standalone Spark cluster runs in the racks of the lab, with real agents and the real controller: master and driver on
the first host, an executor with one core on each other host, all links at one rate. The job broadcasts an array of
random bytes; every executor deserializes it and computes its CRC-32, which must equal the driver's. The clock runs from
the call until the last executor has done so, and includes the request, TL1, OpenFlow and the agents. Three methods are
compared: Spark's own (TorrentBroadcast), the plugin without a change to the job, and `blast_broadcast`. The first
broadcast of an application does not count. The methods alternate; ratios are of the pairs of a round, with a 90 %
interval by ranks. Uplink bytes are all bytes that leave the driver's host, over all its links. All hosts share the
processors of this machine: with a small idle share, a ratio compares processor time.

`--job threads` makes four broadcasts from four threads at the same time, `--job star` runs a star join whose three
dimensions Spark broadcasts at the same time: claim <= 0.6 of Spark's time. `--dead-agents 1` kills the agent of one
executor before the first broadcast: claim <= 0.75 of Spark's time. As root, on an idle machine:

    scripts/setup spark && mvn -q -f clients/java/pom.xml package -pl spark -am -DskipTests
    .venv/bin/python benchmarks/transfers/spark_broadcast.py
    .venv/bin/python benchmarks/transfers/spark_broadcast.py --executors 7 --no-compress --repeats 5 --json
    .venv/bin/python benchmarks/transfers/spark_broadcast.py --job threads --megabytes 10 --broadcasts 5
    .venv/bin/python benchmarks/transfers/spark_broadcast.py --dead-agents 1 --megabytes 32

Exit status 1 if an executor read wrong bytes or, with `--job one` and all agents, a broadcast did not use the optical
transport; times do not change the exit status.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.median_interval import median_interval
from benchmarks.transfers.bed import script
from benchmarks.transfers.spark_bed.asking import BROADCASTS_OF, JOB, order, transports_of_plugin
from mininet_topos.spark.installation import find_plugin, find_spark
from mininet_topos.spark.plan import spark_plan
from mininet_topos.spark.room import SparkRoom, spark_room

MEGABYTES, REPEATS, EXECUTORS, RATE_MBPS, BROADCASTS = 100, 5, 3, 40, 3
TORRENT, PLUGIN, EXPLICIT = "torrent", "plugin", "explicit"
TITLES = {TORRENT: "Spark's own", PLUGIN: "the plugin", EXPLICIT: "blast_broadcast"}
COPIES_BARS = {PLUGIN: 1.15, EXPLICIT: 1.05}
TIME_BARS = {3: 1 / 2, 7: 1 / 3}
"""By the number of executors."""
TOGETHER_BAR, DEAD_AGENT_BAR = 0.6, 0.75
_OPTIONS = ("megabytes", "executors", "rate_mbps", "compress", "job", "dead_agents")


@dataclass(frozen=True)
class Application:
    """The medians over the broadcasts of an application without the first."""

    seconds: float
    copies: float
    transports: list[str]
    equal: bool
    idle_share: float


def main() -> bool:
    """Measure and print; return whether every executor read the correct bytes, over the optical transport."""
    args = _arguments()
    jar, spark = find_plugin(), find_spark()
    with spark_room(spark_plan(args.executors + 1, args.rate_mbps), spark) as room:
        for host in room.cluster.executors[args.executors - args.dead_agents :]:
            room.agents.kill(host)
        measures = {way: partial(_measured, room, way, jar, args) for way in args.methods}
        results = script.alternate(measures, args.repeats, 0)
    own = results.get(TORRENT, [])
    report = {
        **{name: getattr(args, name) for name in _OPTIONS},
        "rows": [_row(way, runs) for way, runs in results.items()],
        "ratios": {way: _ratio(runs, own) for way, runs in results.items() if own and way != TORRENT},
    }
    machine.show(args.json, report, _text(report))
    transports = {one for name, runs in results.items() if name != TORRENT for run in runs for one in run.transports}
    is_optical = not _is_alone(args) or transports <= {"optical"}
    return is_optical and all(run.equal for runs in results.values() for run in runs)


def _is_alone(args: argparse.Namespace) -> bool:
    """Return whether broadcasts do not share the link, and every executor has an agent."""
    return args.job == "one" and not args.dead_agents


def _measured(room: SparkRoom, way: str, jar: Path, args: argparse.Namespace) -> Application:
    size, cluster, plugin = args.megabytes * 1_000_000, room.cluster, room.plugin_conf(jar)
    together = BROADCASTS_OF[args.job]
    memory = f"{1024 + 6 * args.megabytes * together}m"
    conf = {"spark.broadcast.compress": str(args.compress).lower(), **(plugin if way == PLUGIN else {})}
    conf |= {"spark.driver.memory": memory, "spark.executor.memory": memory}
    explicit = {
        "host": cluster.driver,
        "controller": plugin["spark.blast.controller"],
        "secret": str(room.agents.places.secret),
        "agents": {cluster.address(host): f"{host}={room.agents.address(host)}" for host in cluster.executors},
    }
    orders = cluster.folder / "orders"
    orders.write_text(f"{order(size, explicit if way == EXPLICIT else None, args.job)}\n" * args.broadcasts)
    run = cluster.submit(JOB, [str(orders)], conf)
    # The first line has the id of the application, the second the broadcast that does not count.
    counted = [json.loads(line) for line in run.output.read_text().splitlines() if line.startswith("{")][2:]
    transports = [one["way"] for one in counted]
    if way != EXPLICIT:
        transports = transports_of_plugin(next((run.output.parent / "events").iterdir()))
    return Application(
        statistics.median(one["seconds"] for one in counted),
        statistics.median(one["uplink_bytes"] for one in counted) / size / together,
        transports,
        all(one["equal"] for one in counted),
        run.idle,
    )


def _row(way: str, runs: Sequence[Application]) -> dict[str, Any]:
    return {
        "way": way,
        **{name: statistics.median(getattr(run, name) for run in runs) for name in ("seconds", "copies", "idle_share")},
        "runs": [asdict(run) for run in runs],
    }


def _ratio(ours: Sequence[Application], own: Sequence[Application]) -> dict[str, Any]:
    pairs = [one.seconds / other.seconds for one, other in zip(ours, own, strict=True)]
    low, middle, high = median_interval(pairs)
    return {"ratio": middle, "interval": [low, high], "pairs": pairs}


def _text(report: Mapping[str, Any]) -> list[str]:
    copy, together = report["megabytes"] * 8 / report["rate_mbps"], BROADCASTS_OF[report["job"]]
    dead = f" ({report['dead_agents']} without an agent)" if report["dead_agents"] else ""
    lines = [
        f"job {report['job']}: {together} x {report['megabytes']} MB to {report['executors']} executors{dead}, "
        f"every link {report['rate_mbps']:g} Mbit/s, compression {'on' if report['compress'] else 'off'}: "
        f"one copy on a link takes {copy:.2f} s",
        f"{'':<18}{'median':>10}{'min':>10}{'max':>10}{'uplink ÷ size':>15}{'bar':>7}{'idle CPU':>10}   transports",
    ]
    for row in report["rows"]:
        times = [run["seconds"] for run in row["runs"]]
        transports = Counter(one for run in row["runs"] for one in run["transports"])
        lines.append(
            f"{TITLES[row['way']]:<18}{row['seconds']:>8.2f} s{min(times):>8.2f} s{max(times):>8.2f} s"
            f"{row['copies']:>15.3f}{COPIES_BARS.get(row['way'], ''):>7}{row['idle_share']:>10.0%}   "
            f"{', '.join(f'{count} {name}' for name, count in transports.items()) or 'Spark'}"
        )
    bar = _time_bar(report)
    for way, ratio in report["ratios"].items():
        low, high = ratio["interval"]
        against = f", bar {bar:.3f}{'' if ratio['ratio'] <= bar else '  MISSED'}" if bar else ""
        lines.append(f"{TITLES[way]} ÷ Spark's own: {ratio['ratio']:.3f} ({low:.3f}-{high:.3f}){against}")
    return lines


def _time_bar(report: Mapping[str, Any]) -> float | None:
    if report["dead_agents"]:
        return DEAD_AGENT_BAR if report["executors"] == 3 and report["job"] == "one" else None
    return TIME_BARS.get(report["executors"]) if report["job"] == "one" else TOGETHER_BAR


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument(
        "--executors", type=script.count, default=EXECUTORS, help=f"number of executors (default: {EXECUTORS})"
    )
    rate = f"rate of every link in Mbit/s (default: {RATE_MBPS})"
    parser.add_argument("--rate-mbps", type=script.count, default=RATE_MBPS, help=rate)
    job = "one broadcast, or several at the same time (default: one)"
    parser.add_argument("--job", choices=BROADCASTS_OF, default="one", help=job)
    parser.add_argument("--dead-agents", type=int, default=0, help="number of agents to kill (default: 0)")
    broadcasts = f"broadcasts of each application, of which the first does not count (default: {BROADCASTS})"
    parser.add_argument("--broadcasts", type=script.count, default=BROADCASTS, help=broadcasts)
    parser.add_argument("--no-compress", dest="compress", action="store_false", help="spark.broadcast.compress=false")
    methods = f"methods, separated by commas: {','.join(TITLES)} (default: all; the first two if --job or "
    methods += "--dead-agents is given)"
    parser.add_argument("--methods", metavar="NAME,…", type=script.some_of(TITLES), help=methods)
    args = parser.parse_args()
    args.methods = args.methods or (list(TITLES) if _is_alone(args) else [TORRENT, PLUGIN])
    if EXPLICIT in args.methods and not _is_alone(args):
        parser.error("--methods explicit needs --job one and no --dead-agents")
    if not 0 <= args.dead_agents < args.executors:
        parser.error("--dead-agents must be less than --executors")
    if args.broadcasts < 2:
        parser.error("--broadcasts must be at least 2: the first broadcast does not count")
    return args


if __name__ == "__main__":
    script.run(main)
