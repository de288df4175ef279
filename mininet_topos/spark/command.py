"""`blast lab spark`: its execution and exit status."""

from __future__ import annotations

import argparse
import json
import sys

from thrift.Thrift import TException
from tqdm import tqdm

from blast_base.command_line import DONE, FAILED, PARTLY, TERMINATED, WRONG_INPUT
from blast_client import ControllerUnreachableError
from blast_client.cli.failures import explain_failure
from blast_sim.base.options import require_drawing
from mininet_topos.kernel.errors import LabError, PlanError, ProcessError
from mininet_topos.kernel.netdev import require_root
from mininet_topos.kernel.termination import end_in_order
from mininet_topos.spark.examples import ExampleSize, examples_of
from mininet_topos.spark.installation import ENVIRONMENT, find_plugin, find_spark
from mininet_topos.spark.plan import spark_plan
from mininet_topos.spark.report import as_json, as_text
from mininet_topos.spark.trials import SparkTrial, Trials
from mininet_topos.topology.plan import LabPlan

_PICTURES = (".svg", ".png")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print and draw; return the exit status. Raises NotInstalledError if no picture can be drawn."""
    require_drawing()
    seen: list[SparkTrial] = []
    try:
        plan = spark_plan(arguments.racks, arguments.rate_mbps)
        _measure(arguments, plan, _trials(arguments), seen)
        sentence, status = "", DONE
    except PlanError as error:
        sentence, status = str(error), WRONG_INPUT
    except (LabError, OSError) as error:
        sentence, status = str(error), PARTLY if seen else FAILED
    except (TException, ControllerUnreachableError) as error:
        sentence, status = explain_failure(error)[1], FAILED
    finally:
        # Print the measurements made before a failure or an interruption, because they took long.
        if seen:
            _print_results(arguments, plan, seen)
    if sentence:
        sys.stderr.write(f"blast lab spark: {sentence}\n")
    return status


def _trials(arguments: argparse.Namespace) -> Trials:
    """Return the requested trials. Raises `PlanError`, and `HostError` if a requirement is not installed."""
    examples = examples_of(arguments.examples)
    if arguments.picture.suffix not in _PICTURES or not arguments.picture.parent.is_dir():
        raise PlanError(f"--picture {arguments.picture} is no file ending in .svg or .png in a folder that exists")
    return Trials(
        spark=find_spark(arguments.spark or ENVIRONMENT),
        examples=examples,
        size=ExampleSize(round(arguments.mb * 1e6), arguments.iterations, arguments.racks - 1),
        pairs=arguments.pairs,
        plugin=None if arguments.without_plugin else find_plugin(arguments.plugin),
    )


def _measure(arguments: argparse.Namespace, plan: LabPlan, trials: Trials, seen: list[SparkTrial]) -> None:
    """Fill `seen`."""
    require_root()
    # Mininet is a Debian package: errors must be reported without it.
    from mininet_topos.spark.room import spark_room

    end_in_order(TERMINATED)
    with tqdm(total=trials.count, unit="run", disable=not sys.stderr.isatty(), file=sys.stderr, leave=False) as bar:
        bar.set_description("lab and cluster")

        def begun(example: str, step: str) -> None:
            bar.set_description(f"{example}, {step}")

        faults: list[str] = []
        with spark_room(plan, trials.spark) as room:
            room.lab.watch(faults.append)
            for trial in trials.run(room, begun, bar.refresh):
                faults += [f"the agent of {host} ended by itself" for host in room.agents.ended]
                if faults:
                    raise ProcessError(faults[0])
                seen.append(trial)
                bar.update()


def _print_results(arguments: argparse.Namespace, plan: LabPlan, trials: list[SparkTrial]) -> None:
    from mininet_topos.spark.picture import draw

    pictures = draw(arguments.picture, trials)
    if arguments.json:
        sys.stdout.write(json.dumps(as_json(plan, trials), indent=1) + "\n")
    else:
        sys.stdout.write(as_text(plan, trials) + f"\n{', '.join(map(str, pictures))}\n")
