"""Simulations and fuzzing that find more the longer they run: `make soak SOAK_ARGS="--seed 7 --minutes 30"`.

    core         10^6 steps of the core, its journal and its devices, under faults
    controllers  10^4 rounds of faults of several controllers on one journal
    switches     1200 rounds of faults of an optical switch, 200 for each driver and dialect
    decoders     10^7 inputs, shared by the decoders of what comes from outside; and the branches that they reach
    readers      10^7 inputs, shared by everything else that reads foreign bytes (data plane, OpenFlow, files)
    members      every field of a receiver's messages, false, extreme, late, repeated or missing, on every transport
    handovers    200 rounds of one transfer that changes its transport while receivers are late, lose their group or die
    engine       10^7 messages to the compiled engine with all of its assertions (needs Rust)

Every failure prints the command that shows it again. `--slice` is the small part that continuous integration runs.
Inputs of readers and engine are fixed: --seed and --minutes apply to the others.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.soak import controllers, core, decoders, handovers, members, switches
from tests.soak.episodes import Effort
from tests.support.needs import ROOT

_DECODERS, _READERS = 9, 12
_HAS_A_DECODER = ("test_config_fuzz", "test_rpc_messages_fuzz", "test_tl1_fuzz")


def readers(effort: Effort) -> int:
    """Run the other fuzz tests with the total number of inputs in `effort`."""
    files = [str(file) for file in (ROOT / "tests").rglob("test_*_fuzz.py") if file.stem not in _HAS_A_DECODER]
    words = ["-m", "pytest", "-q", "-n", str(effort.jobs), "--override-ini=timeout=0", *sorted(files)]
    inputs = {"BLAST_FUZZ_INPUTS": str(max(1, effort.units // _READERS))}
    return subprocess.run([sys.executable, *words], cwd=ROOT, env={**os.environ, **inputs}, check=False).returncode


def engine(effort: Effort) -> int:
    """Run the fuzz test of the compiled engine, whose inputs are fixed."""
    words = [str(ROOT / "scripts/cargo"), "test", "--profile", "checked", "-p", "blast_blocks", "--lib", "--locked"]
    messages = {"BLAST_SOAK_MESSAGES": str(effort.units)}
    command = [*words, "--", "--ignored", "random_messages"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **messages}, check=False, stdout=subprocess.PIPE, text=True
    )
    print(done.stdout, end="")
    # cargo succeeds when no test has the name.
    return done.returncode or int("1 passed" not in done.stdout)


@dataclass(frozen=True)
class Soak:
    """One soak and its sizes, whole and as a slice; `run` returns 0 if nothing failed."""

    run: Callable[[Effort], int]
    whole: int
    slice: int
    trace: Callable[[int], int] | None = None


SOAKS = {
    "core": Soak(core.run, 10**6, 10_000, core.trace),
    "controllers": Soak(controllers.run, 10**4, 60, controllers.trace),
    "switches": Soak(switches.run, 1200, 60, switches.trace),
    "decoders": Soak(lambda effort: decoders.run(shared(effort)), 10**7, 45_000),
    "readers": Soak(readers, 10**7, 60_000),
    "members": Soak(members.run, len(members.cases()), 12),
    "handovers": Soak(handovers.run, 200, 6, handovers.trace),
    "engine": Soak(engine, 10**7, 200_000),
}


def shared(effort: Effort) -> Effort:
    """Return the effort of each decoder."""
    return Effort(effort.units // _DECODERS, effort.seed, effort.jobs, effort.deadline, effort.command)


def main() -> int:
    """Run what is asked for, one soak after the other; exit status 1 if anything failed."""
    parser = argparse.ArgumentParser("make soak", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=SOAKS, action="append", help="run this soak; may be repeated (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first episode or input (default: 0)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end each soak after this time")
    parser.add_argument("--units", type=int, help="steps, rounds or inputs, instead of the usual number")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--slice", action="store_true", help="run the small fixed slice of each soak")
    parser.add_argument("--trace", action="store_true", help="with --only: play the episode of --seed and print it")
    options = parser.parse_args()
    names = options.only or list(SOAKS)
    if options.trace:
        traces = [SOAKS[name].trace for name in names]
        if len(traces) != 1 or traces[0] is None:
            parser.error("--trace needs --only core, controllers, switches or handovers")
        return traces[0](options.seed)
    failed = [name for name in names if SOAKS[name].run(effort_of(name, options)) != 0]
    print(f"soak: {len(names) - len(failed)} passed, {len(failed)} failed {' '.join(failed)}".rstrip())
    return 1 if failed else 0


def effort_of(name: str, options: argparse.Namespace) -> Effort:
    """Return how much one soak does, with these options."""
    soak = SOAKS[name]
    print(f"soak: {name}", file=sys.stderr, flush=True)
    units = options.units or (soak.slice if options.slice else soak.whole)
    deadline = time.monotonic() + 60 * options.minutes
    return Effort(units, options.seed, options.jobs, deadline, f"scripts/soak --only {name}")


if __name__ == "__main__":
    sys.exit(main())
