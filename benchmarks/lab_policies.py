"""Claim: in the lab the default policy completes a mix of requests sooner, in the mean, than the paper's rule.

One seeded mix of heavy-tailed requests, some of which may pause and some may be split, is really sent twice: under the
policy `paper` and under the default. Every transfer, pre-empted and split ones too, must arrive byte-identical at every
receiver. Eight racks, two splitters 1:4, rate and size 1:250 of 10 Gbit/s. Run as root:

    .venv/bin/python benchmarks/lab_policies.py --requests 24 --seed 1
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

import machine

from algorithms.scheduling import DEFAULT
from blast_client import Client
from mininet_topos.demo.latency import KEEP_WARM_MS
from mininet_topos.demo.mix import Asked, Outcome, Served, draw, serve
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.lab import Lab
from mininet_topos.plan import LabPlan, preset

QUICK_REQUESTS = 12


def main() -> int:
    """Measure and print; 1 if something did not arrive intact. Which one is faster is told, and decides nothing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REQUESTS} requests")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    plan = preset("small", light_rate_mbps=40.0)
    mix = draw(plan, QUICK_REQUESTS if args.quick else args.requests, args.seed)
    outcomes = [_measure(plan, mix, policy) for policy in ("paper", DEFAULT)]
    if args.json:
        print(json.dumps({"machine": machine.describe(), "seed": args.seed, **_to_json(outcomes)}, indent=2))
    else:
        print(machine.describe())
        print(plan.summary)
        print("\n".join(_table(mix, outcomes)))
    intact = all(served.complete for outcome in outcomes for served in outcome.served)
    return 0 if intact else 1


def _measure(plan: LabPlan, mix: list[Asked], policy: str) -> Outcome:
    finished = 0

    def done(served: Served) -> None:
        nonlocal finished
        finished += 1
        sys.stderr.write(f"\r{policy}: {finished} of {len(mix)} served")

    with Lab(plan, policy=policy, keep_warm_ms=KEEP_WARM_MS) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.wait_devices()
        outcome = serve(stage, mix, policy, done)
    sys.stderr.write("\n")
    return outcome


def _table(mix: list[Asked], outcomes: list[Outcome]) -> list[str]:
    rows = [
        f"{'request':<10}{'at s':>7}{'MB':>8}{'racks':>7}{'may':>14}" + "".join(f"{o.policy:>30}" for o in outcomes)
    ]
    for index, asked in enumerate(mix):
        may = " ".join(word for word, wanted in (("pause", asked.may_pause), ("split", asked.may_split)) if wanted)
        cells = "".join(f"{_cell(outcome.served[index]):>30}" for outcome in outcomes)
        rows.append(
            f"{asked.name:<10}{asked.at:>7.2f}{asked.size / 1e6:>8.2f}{1 + len(asked.receivers):>7}{may:>14}{cells}"
        )
    paper, default = outcomes
    rows += [
        f"{'mean completion, s':<46}" + "".join(f"{outcome.mean_seconds:>30.2f}" for outcome in outcomes),
        f"{'longest completion, s':<46}" + "".join(f"{outcome.longest_seconds:>30.2f}" for outcome in outcomes),
        f"{'pauses / split requests':<46}" + "".join(f"{f'{o.pauses} / {o.split}':>30}" for o in outcomes),
        f"{'byte-identical at every receiver':<46}" + "".join(f"{_intact(outcome):>30}" for outcome in outcomes),
        f"{default.policy} against {paper.policy}: mean {default.mean_seconds / paper.mean_seconds:.2f}",
    ]
    return rows


def _cell(served: Served) -> str:
    notes = [f"{served.pauses} pauses"] if served.pauses else []
    notes += [f"{len(served.parts)} parts"] if len(served.parts) > 1 else []
    notes += [] if served.complete else ["BROKEN"]
    return f"{', '.join(notes)} {served.seconds:8.2f} s"


def _intact(outcome: Outcome) -> str:
    return f"{sum(served.complete for served in outcome.served)} of {len(outcome.served)}"


def _to_json(outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        outcome.policy: {
            "mean_seconds": round(outcome.mean_seconds, 3),
            "longest_seconds": round(outcome.longest_seconds, 3),
            "pauses": outcome.pauses,
            "split": outcome.split,
            "requests": [
                {
                    **asdict(served.asked),
                    "seconds": round(served.seconds, 3),
                    "pauses": served.pauses,
                    "parts": len(served.parts),
                    "intact": served.complete,
                }
                for served in outcome.served
            ],
        }
        for outcome in outcomes
    }


if __name__ == "__main__":
    sys.exit(main())
