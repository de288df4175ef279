"""Claims about the rate of the transports with datagrams to receivers with independent loss.

| transport, receivers | lost | share of the rate without loss | bytes on the sender's link / bytes without loss |
|---|---|---|---|
| optical, 7 | 0.1 % | >= 0.97 | |
| | 1 % | >= 0.85 | |
| multicast, 32 | 0.1 % | >= 0.97 | <= 1.02 |
| | 1 % | >= 0.93 | <= 1.06 |
| | 5 % | >= 0.80 | <= 1.25 |

Links are unshaped; `--rate-mbps` limits the rate of `multicast`. A preloaded library (`bed/programs/lossy.c`, also for
the row without loss) drops datagrams in the receivers, because the kernel here has no netem and filters see 44
datagrams as one packet. The result is the median of the ratios of rounds, with a 90 % interval by ranks. `--peers`
measures udpcast and uftp, whose datagrams are lost in the same way, at the same limit. As root:

    .venv/bin/python benchmarks/transfers/loss.py                              # about ten minutes, 8 GB of memory
    .venv/bin/python benchmarks/transfers/loss.py --megabytes 100 --repeats 1
    .venv/bin/python benchmarks/transfers/loss.py --transport multicast --receivers 32 --rate-mbps 10 --megabytes 15

Exit status 1 if a receiver lacks the whole file, or if the measured loss differs from the set loss by more than a
tenth; rates and bytes do not change the exit status. The kernel counts the headers of a super-packet once.
"""

from __future__ import annotations

import argparse
import math
import statistics
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine
from benchmarks.median_interval import median_interval
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.bed import SENDER, Bed, Plan
from benchmarks.transfers.bed.contents import used_until_now
from benchmarks.transfers.bed.failures import PrerequisiteError, RunFailedError
from benchmarks.transfers.bed.programs import compile_into
from benchmarks.transfers.bed.run import Run, opened, timed
from benchmarks.transfers.bed.shape import MTU
from benchmarks.transfers.bed.struck import Struck, watched
from benchmarks.transfers.bed.tools.blast import Blast, BlastMulticast, BlastOptical
from benchmarks.transfers.bed.tools.peers import Udpcast, Uftp

RECEIVERS = 7


class Bar(NamedTuple):
    """The minimum ratio of the rate to that without loss, and the maximum ratio of the sender's bytes."""

    share: float
    bytes: float | None = None


BARS = {
    "optical": {0.0: Bar(1.0), 1e-3: Bar(0.97), 1e-2: Bar(0.85)},
    "multicast": {0.0: Bar(1.0), 1e-3: Bar(0.97, 1.02), 1e-2: Bar(0.93, 1.06), 5e-2: Bar(0.80, 1.25)},
}
"""By transport and share of lost datagrams."""
MEGABYTES, REPEATS = 400, 15
_MAX_OFF = 0.1
_LIMIT_SECONDS = 180.0
_UDP_HEADERS = 28
_COUNTS = struct.Struct("=QQ")


def main() -> bool:
    """Measure and print; return whether every receiver has the file."""
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument("--transport", choices=BARS, default="optical", help="transport (default: optical)")
    parser.add_argument("--receivers", type=script.count, default=RECEIVERS, help=f"default: {RECEIVERS}")
    parser.add_argument("--rate-mbps", type=script.count, help="limit of the rate of multicast (default: none)")
    parser.add_argument("--peers", action="store_true", help="measure udpcast and uftp too")
    args = parser.parse_args()
    bars = BARS[args.transport]
    with script.bed_and_file(Plan(args.receivers), args.megabytes * 1_000_000) as (bed, source):
        library = compile_into(source.parent, "lossy")
        kind = partial(_LimitedMulticast, args.rate_mbps) if args.transport == "multicast" else BlastOptical
        measures: dict[str, Callable[[], Measured]] = {
            f"loss {share:g}": partial(_measure, share, bed, source, library, kind) for share in bars
        }
        results = script.alternate(measures, args.repeats)
        peers = _measure_peers(bed, source, library, args) if args.peers else []
    lossless = [one.run.others_seconds for one in results["loss 0"]]
    rows = [_row(args.megabytes, share, bar, results[f"loss {share:g}"], lossless) for share, bar in bars.items()]
    for row in rows:
        row["sent_share"] = row["sent"] / rows[0]["sent"]
        row["kept"] = row["interval"][1] >= row["bar"] and row["sent_share"] <= (row["sent_bar"] or math.inf)
    limit = f"at most {args.rate_mbps} Mbit/s" if args.rate_mbps else "unshaped"
    head = (
        f"{args.transport}, {args.receivers} receivers, {limit}, {args.megabytes} MB, {args.repeats} rounds: medians, "
        "90 % intervals"
    )
    found = {"megabytes": args.megabytes, "rows": rows, "peers": peers}
    machine.show(args.json, found, [head, *map(_line, rows), *map(_peer_line, peers)])
    return not any(row["wrong"] or row["void"] for row in rows)


@dataclass(frozen=True)
class Measured:
    """A transfer, the measured share of lost datagrams, and the sender's bytes for each byte of the file."""

    run: Struck
    lost: float
    sent: float


class _LimitedMulticast(BlastMulticast):  # type: ignore[misc, valid-type]
    """Multicast at a limited rate."""

    def __init__(self, rate_mbps: int | None) -> None:
        super().__init__()
        self._rate_mbps = rate_mbps

    def transport_options(self, run: Run) -> list[str]:
        """Add the limit."""
        return [*super().transport_options(run), *(["--rate-mbps", str(self._rate_mbps)] if self._rate_mbps else [])]


def _measure(share: float, bed: Bed, source: Path, library: Path, kind: Callable[[], Blast]) -> Measured:
    """Measure one transfer."""
    tool = kind()
    with opened(bed, source) as run:
        counts = _lose(run, share, library)
        try:
            with used_until_now(source.parent, source.stat().st_size * bed.plan.receivers):
                tool.prepare(run)
            before = bed.sent_bytes(SENDER)
            struck = watched(tool, run, _LIMIT_SECONDS, None, victims=set(), failing=set())
        except RunFailedError as failure:
            raise PrerequisiteError(f"the transfer with a loss of {share:g} failed: {failure}") from failure
    return Measured(struck, _lost(counts), (bed.sent_bytes(SENDER) - before) / source.stat().st_size)


def _lose(run: Run, share: float, library: Path) -> list[Path]:
    """Let all receivers of a run lose this share; return the files with their counts."""
    counts = {receiver: run.source.parent / f"lost-{receiver}" for receiver in run.receivers}
    for receiver, count in counts.items():
        count.unlink(missing_ok=True)
        settings = {"SHARE": repr(share), "SEED": receiver, "COUNT": count, "DATAGRAM": MTU - _UDP_HEADERS}
        lossy = {f"LOSSY_{name}": str(value) for name, value in settings.items()}
        run.environments[receiver] = {"LD_PRELOAD": str(library), **lossy}
    return list(counts.values())


def _lost(counts: Sequence[Path]) -> float:
    lost, seen = map(sum, zip(*(_COUNTS.unpack(count.read_bytes()) for count in counts), strict=True))
    return lost / max(seen, 1)


def _measure_peers(bed: Bed, source: Path, library: Path, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure each peer once at each share."""
    rows = []
    for kind in (Udpcast, Uftp):
        without = 0.0
        for share in BARS[args.transport]:
            tool = kind()
            tool.rate_mbps = args.rate_mbps
            with opened(bed, source) as run:
                counts, before = _lose(run, share, library), bed.sent_bytes(SENDER)
                outcome = timed(tool, run, _LIMIT_SECONDS)
                sent = (bed.sent_bytes(SENDER) - before) / source.stat().st_size
            without = without or outcome.seconds
            row = {"tool": tool.name, "loss": share, "lost": _lost(counts), "seconds": outcome.seconds, "sent": sent}
            rows.append({**row, "share": without / outcome.seconds, "failure": outcome.failure})
    return rows


def _row(megabytes: int, share: float, bar: Bar, runs: Sequence[Measured], lossless: Sequence[float]) -> dict[str, Any]:
    times = [one.run.others_seconds for one in runs]
    low, ratio, high = median_interval([without / seconds for without, seconds in zip(lossless, times, strict=True)])
    lost, sent = statistics.mean(one.lost for one in runs), statistics.median(one.sent for one in runs)
    return {
        "loss": share,
        "lost": lost,
        "void": abs(lost - share) > _MAX_OFF * share,
        "seconds": statistics.median(times),
        "gbps": megabytes * 8e-3 / statistics.median(times),
        "share": ratio,
        "interval": [low, high],
        "bar": bar.share,
        "sent": sent,
        "sent_bar": bar.bytes,
        "repaired_bytes": [one.run.report.get("repaired_bytes") for one in runs],
        "transports": sorted({tuple(one.run.report.get("transports", ())) for one in runs}),
        "wrong": sorted({sentence for one in runs for sentence in one.run.wrong}),
    }


def _line(row: dict[str, Any]) -> str:
    (low, high), void = row["interval"], "  VOID" if row["void"] else ""
    return "\n    wrong: ".join(
        [
            f"loss {row['loss']:<7g} (measured {row['lost']:.2e}{void}) {row['gbps']:7.3f} Gbit/s "
            f"{row['seconds']:7.2f} s  x {row['share']:.3f} ({low:.3f}-{high:.3f}) of no loss, bar {row['bar']:g}; "
            f"sent x {row['sent']:.3f}, x {row['sent_share']:.3f} of no loss"
            f"{'' if row['kept'] else '  MISSED'}",
            *row["wrong"],
        ]
    )


def _peer_line(row: dict[str, Any]) -> str:
    return (
        f"{row['tool']}, loss {row['loss']:<7g} (measured {row['lost']:.2e}) {row['seconds']:7.2f} s  "
        f"x {row['share']:.3f} of no loss; sent x {row['sent']:.3f}{row['failure'] and '  failed: ' + row['failure']}"
    )


if __name__ == "__main__":
    script.run(main)
