"""The options of `blast lab spark`. Loaded at every start of `blast lab`, so it loads nothing that calculates."""

from __future__ import annotations

import argparse
from pathlib import Path

from blast_sim.base.options import new_parser, positive, reporting_errors, whole_number

_SPARK = """\
Start a standalone Spark cluster in the racks of a lab, the driver in the first host and an executor of one core in each
other, and run Spark's own examples there, unchanged: as they are and with the plugin, in turn; needs root. Ends with a
table and a picture of the time per iteration.

Each turn of an example's loop broadcasts --mb megabytes or more, from the second on, as the event log shows:
  als                  the factors of the users; two jobs for each iteration
  kmeans               MLlib's k-means: the centers; ends when they stay, after two turns or more, which --iterations
                       does not change
  logistic_regression  MLlib's, by gradient descent: the weights
  lda                  MLlib's online LDA: the matrix of topics and words; always ten iterations
  join                 a broadcast hash join of Spark SQL, a script of ours: Spark has no example of one
Other examples cannot be made to: logistic_regression.py has ten weights whatever its data, ml/als_example.py
broadcasts nothing but its tasks, and pagerank.py has all in its shuffles.
"""
_EXAMPLE = """\
examples:
  blast lab spark                                     als, 50 MB, three racks of executors at 40 Mbit/s
  blast lab spark --examples all --pairs 3 --json > spark.json
  blast lab spark --examples join --racks 8 --mb 100 --without-plugin
"""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `spark` to `blast lab`."""
    spark = new_parser(commands, "spark", "Spark's own examples, with the plugin and without", _SPARK, _EXAMPLE)
    spark.add_argument("--examples", metavar="NAME,NAME|all", default="als", help="(default: als)")
    spark.add_argument("--mb", type=positive, default=50.0, metavar="N", help="to broadcast in a turn (default: 50)")
    spark.add_argument("--iterations", type=whole_number(1, 1000), default=3, metavar="N", help="(default: 3)")
    spark.add_argument("--pairs", type=whole_number(1, 1000), default=1, metavar="N", help="of runs (default: 1)")
    spark.add_argument("--racks", type=whole_number(2, 32), default=4, metavar="N", help="of one host (default: 4)")
    spark.add_argument("--rate-mbps", type=positive, default=40.0, metavar="N", help="of links and light (40)")
    spark.add_argument("--json", action="store_true", help="print all that was measured as JSON")
    spark.add_argument("--picture", type=Path, default=Path("blast-spark.svg"), metavar="FILE", help="svg or png")
    spark.add_argument("--without-plugin", action="store_true", help="only as they are")
    spark.add_argument("--plugin", type=Path, metavar="JAR", help="(default: the one built in the checkout)")
    spark.add_argument("--spark", type=Path, metavar="DIR", help="environment with pyspark (default: .venv-spark)")
    spark.set_defaults(run=_run)


@reporting_errors
def _run(arguments: argparse.Namespace) -> int:
    from mininet_topos.spark.command import run

    return run(arguments)
