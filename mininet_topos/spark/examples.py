"""Spark's examples as they are, made so large that each turn of their loop broadcasts a given number of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from mininet_topos.kernel.errors import PlanError
from mininet_topos.spark import data
from mininet_topos.spark.installation import SparkInstallation

_DOUBLE = 8
_ALS_FACTORS = 64
_KMEANS_CENTERS, _KMEANS_POINTS = 8, 32
_FEWEST_LABELED = 3
"""Two that contradict each other and a third, or else the weights stay at zero."""
_LDA_TOPICS = 10
"""The number of topics in Spark's example."""
_LDA_DOCUMENTS, _LDA_WORDS = 1000, 20
_JOIN_ROW = 50
"""Bytes that a row becomes, five of the six numbers in it being random."""


@dataclass(frozen=True)
class ExampleSize:
    """The size of an example: bytes to broadcast in each iteration, iterations, executors."""

    bytes: int
    iterations: int
    executors: int


@dataclass(frozen=True)
class Example:
    """One of them.

    `script`: below Spark's examples, or a path. `prepare` writes its input into the folder it then runs in, `arguments`
    are what it is called with there. Its loop turns with every `jobs`-th job called like `job`. A heap has
    `driver_share` or `executor_share` times the bytes that are broadcast, and what Spark itself needs. `fixed`: it
    decides itself how often its loop turns.
    """

    name: str
    broadcasts: str
    script: str | Path
    arguments: Callable[[ExampleSize], Sequence[str]]
    job: re.Pattern[str]
    jobs: int = 1
    prepare: Callable[[Path, ExampleSize], None] = lambda _folder, _size: None
    driver_share: float = 4
    executor_share: float = 4
    fixed: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)

    def path(self, spark: SparkInstallation) -> Path:
        """Return the path of the script."""
        return spark.examples / self.script

    def conf_of(self, size: ExampleSize) -> dict[str, str]:
        """Return its settings in addition to those of every job."""
        shares = {"driver": self.driver_share, "executor": self.executor_share}
        heaps = {
            f"spark.{role}.memory": f"{ceil(_SPARK_HEAP + share * size.bytes) >> 20}m" for role, share in shares.items()
        }
        return {**heaps, **self.conf}


_SPARK_HEAP = 512 << 20
"""The memory that Spark needs by itself; it refuses to start with less than 450 MiB."""


def _als_arguments(size: ExampleSize) -> Sequence[str]:
    users = ceil(size.bytes / _DOUBLE / _ALS_FACTORS)
    return [str(n) for n in (size.executors, users, _ALS_FACTORS, size.iterations, size.executors)]


def _write_points(folder: Path, size: ExampleSize) -> None:
    dimensions = ceil(size.bytes / _DOUBLE / _KMEANS_CENTERS)
    data.write_points(folder / "points", size.executors, ceil(_KMEANS_POINTS / size.executors), dimensions)


def _write_labeled(folder: Path, size: ExampleSize) -> None:
    data.write_labeled(folder / "labeled", max(_FEWEST_LABELED, size.executors), ceil(size.bytes / _DOUBLE))


def _write_documents(folder: Path, size: ExampleSize) -> None:
    vocabulary = ceil(size.bytes / _DOUBLE / _LDA_TOPICS)
    place = folder / "data" / "mllib" / "sample_lda_libsvm_data.txt"
    data.write_documents(place, size.executors, _LDA_DOCUMENTS, _LDA_WORDS, vocabulary)


_ALL = (
    Example(
        "als",
        "the factors of the users",
        "als.py",
        _als_arguments,
        re.compile(r"^collect at .*als\.py"),
        jobs=2,
    ),
    Example(
        "kmeans",
        "the centers",
        "mllib/kmeans.py",
        lambda size: ["points", str(_KMEANS_CENTERS)],
        re.compile(r"^(collect at DistanceMeasure|collectAsMap at KMeans)"),
        jobs=2,
        prepare=_write_points,
        driver_share=10,
        executor_share=10,
        fixed=True,
    ),
    Example(
        "logistic_regression",
        "the weights, from the second iteration on",
        "mllib/logistic_regression.py",
        # MLlib looks at the loss of the last weights too, in one more round.
        lambda size: ["labeled", str(size.iterations - 1)],
        re.compile(r"^treeAggregate at GradientDescent"),
        prepare=_write_labeled,
        driver_share=24,
        executor_share=16,
    ),
    Example(
        "lda",
        "the topics' words",
        "ml/lda_example.py",
        lambda _size: [],
        re.compile(r"^treeAggregate at LDAOptimizer"),
        prepare=_write_documents,
        driver_share=24,
        executor_share=16,
        fixed=True,
    ),
    Example(
        "join",
        "the smaller table",
        Path(__file__).with_name("broadcast_join.py"),
        lambda size: [str(ceil(size.bytes / _JOIN_ROW)), str(size.iterations)],
        re.compile(r"^collect at .*broadcast_join\.py"),
        jobs=3,
        driver_share=16,
        executor_share=8,
        conf={"spark.sql.broadcastTimeout": "3600"},
    ),
)
EXAMPLES: Mapping[str, Example] = {example.name: example for example in _ALL}


def examples_of(names: str) -> list[Example]:
    """Return the examples that a list such as `als,kmeans` names, or all for `all`.

    Raises `PlanError` for an unknown name.
    """
    chosen = list(EXAMPLES) if names == "all" else list(dict.fromkeys(names.split(",")))
    for name in chosen:
        if name not in EXAMPLES:
            raise PlanError(f"there is no example {name!r}: choose from {', '.join(EXAMPLES)}, or all")
    return [EXAMPLES[name] for name in chosen]
