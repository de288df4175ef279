"""Spark's examples in turn, each as it is and with the plugin, alternating; and what each run came to."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mininet_topos.kernel.errors import ProcessError
from mininet_topos.spark.cluster import SparkRun
from mininet_topos.spark.event_log import Iteration, iterations
from mininet_topos.spark.examples import Example, ExampleSize
from mininet_topos.spark.installation import SparkInstallation
from mininet_topos.spark.printed import Printed, read_printed
from mininet_topos.spark.room import SparkRoom

ALONE, PLUGIN = "spark", "plugin"
"""The ways that broadcasts go: Spark's own, and by Blast."""


@dataclass(frozen=True)
class SparkTrial:
    """One run of an example, with the data of its files. Bytes are counted as in `SparkRun`.

    `broadcast_bytes`: the driver's broadcast data, once each; `remote_bytes`: the part that all executors together
    fetched over the network by Spark itself.
    """

    example: str
    way: str
    pair: int
    executors: int
    seconds: float
    iterations: tuple[Iteration, ...]
    broadcast_bytes: int
    remote_bytes: int
    uplink_bytes: int
    core_bytes: int
    light_bytes: int
    idle: float
    printed: Printed

    @property
    def settled(self) -> Sequence[Iteration]:
        """Without the first, in which everything begins."""
        return self.iterations[1:]

    @property
    def iteration_seconds(self) -> float | None:
        """The median of those; None where there is none."""
        return statistics.median(one.seconds for one in self.settled) if self.settled else None

    @property
    def iteration_bytes(self) -> int | None:
        """Bytes broadcast in the one with the fewest; None where there is none."""
        return min((one.broadcast_bytes for one in self.settled), default=None)

    @property
    def uplink_copies(self) -> float:
        """The traffic of the driver's host divided by its broadcast data; it includes all other traffic."""
        return self.uplink_bytes / max(1, self.broadcast_bytes)


@dataclass(frozen=True)
class Trials:
    """The trials to run: examples of a size, `pairs` times in each way; `plugin` is its jar (None: Spark alone)."""

    spark: SparkInstallation
    examples: Sequence[Example]
    size: ExampleSize
    pairs: int
    plugin: Path | None

    @property
    def count(self) -> int:
        """The number of runs."""
        return len(self.examples) * self.pairs * len(self._methods(0))

    def run(
        self, room: SparkRoom, begun: Callable[[str, str], None], meanwhile: Callable[[], None]
    ) -> Iterator[SparkTrial]:
        """Run the trials and yield each result; call `begun` with example and way before each. Raises ProcessError."""
        for example in self.examples:
            folder = room.cluster.folder / "data" / example.name
            folder.mkdir(parents=True)
            begun(example.name, "data")
            example.prepare(folder, self.size)
            for pair in range(self.pairs):
                for way in self._methods(pair):
                    begun(example.name, way)
                    yield self._trial(room, example, way, pair, folder, meanwhile)
            shutil.rmtree(folder)

    def _methods(self, pair: int) -> Sequence[str]:
        """Return the order of the runs of a pair, which alternates from pair to pair."""
        if self.plugin is None:
            return [ALONE]
        return [ALONE, PLUGIN] if pair % 2 == 0 else [PLUGIN, ALONE]

    def _trial(  # noqa: PLR0913, PLR0917 - each is a thing of its own
        self, room: SparkRoom, example: Example, way: str, pair: int, folder: Path, meanwhile: Callable[[], None]
    ) -> SparkTrial:
        conf = example.conf_of(self.size)
        if way == PLUGIN and self.plugin is not None:
            conf |= room.plugin_conf(self.plugin)
        script, arguments = example.path(self.spark), example.arguments(self.size)
        run = room.cluster.submit(script, arguments, conf, folder=folder, meanwhile=meanwhile)
        passes = iterations(run.log, example.job, example.jobs)
        if not example.fixed and len(passes) != self.size.iterations:
            raise ProcessError(
                f"{example.name} has {len(passes)} iterations in its event log, not {self.size.iterations}: "
                "this Spark names its jobs in another way, or the example ended early"
            )
        trial = _trial_of(run, passes, example.name, way, pair, self.size.executors)
        shutil.rmtree(run.output.parent)
        return trial


def _trial_of(  # noqa: PLR0913, PLR0917 - each is a thing of its own
    run: SparkRun, passes: tuple[Iteration, ...], example: str, way: str, pair: int, executors: int
) -> SparkTrial:
    return SparkTrial(
        example=example,
        way=way,
        pair=pair,
        executors=executors,
        seconds=run.seconds,
        iterations=passes,
        broadcast_bytes=sum(one.bytes for one in run.log.broadcasts),
        remote_bytes=run.remote_reads.bytes_of(run.log),
        uplink_bytes=run.uplinks.access,
        core_bytes=run.uplinks.core,
        light_bytes=run.uplinks.light,
        idle=run.idle,
        printed=read_printed(run.output),
    )
