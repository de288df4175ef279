"""A standalone Spark cluster in the hosts of a lab: master and driver in one, a worker with one executor in each other.

    with SparkCluster(lab, "r1h1", ["r2h1", "r3h1"], spark) as cluster:
        run = cluster.submit(script, ["10"], {"spark.executor.memory": "1g"})
        print(run.seconds, run.log.jobs, run.output.read_text())

Everything that is written goes into one folder in memory, which ends with the cluster.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from mininet_topos.kernel.errors import ProcessError
from mininet_topos.kernel.namespace import run_in_network_of
from mininet_topos.lab import registry
from mininet_topos.lab.agents import Agents
from mininet_topos.lab.lab import Lab
from mininet_topos.spark.event_log import SparkEventLog, read_event_log
from mininet_topos.spark.host_process import HostProcess, OutputFiles
from mininet_topos.spark.installation import SparkInstallation
from mininet_topos.spark.remote_reads import RemoteReads, read_remote_reads
from mininet_topos.topology.counters import Traffic

MASTER_PORT, _PAGE_PORT = 7077, 8080
WORKER_MEMORY = "16g"
"""Maximum memory of a worker's executor: more than any job requests, so that the job alone sets its size."""
_READY_SECONDS = 180.0
"""Java processes start at once on few processors."""
_POLL_SECONDS = 0.5
"""Within this time, Ctrl-C takes effect."""
_DAEMON_MEMORY = "256m"
_EVENTS = "events"

_OF_ANOTHER = ("SPARK_", "PYSPARK_", "HADOOP_", "BLAST_")

_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n
# It logs the blocks that an executor fetches from others; Spark has no other counter for broadcast blocks.
logger.blocks.name = org.apache.spark.storage.BlockManager
logger.blocks.level = debug
"""


@dataclass(frozen=True)
class Uplinks:
    """Bytes sent by the driver's host: by its access link, over the packet core, and over the optical network."""

    access: int
    core: int
    light: int


@dataclass(frozen=True)
class SparkRun:
    """A job that has succeeded.

    `seconds`: from the start of spark-submit to its end. `output`: the file of the job's output, `errors` the file of
    the driver's log; both are deleted with the cluster. `idle`: the idle share of the machine's CPU time.
    """

    seconds: float
    output: Path
    errors: Path
    log: SparkEventLog
    remote_reads: RemoteReads
    uplinks: Uplinks
    idle: float


class SparkCluster:
    """Spark in the hosts of a running lab, while the `with` block runs.

    `driver` runs the master and the drivers of up to `jobs` concurrent jobs; each of `executors` runs a worker with a
    core for each job. With `agents`, each worker's environment has the address of the host's agent and its folder, for
    the plugin. Raises `ProcessError` if it does not start.
    """

    def __init__(  # noqa: PLR0913 - each is a thing of its own
        self,
        lab: Lab,
        driver: str,
        executors: Sequence[str],
        spark: SparkInstallation,
        agents: Agents | None = None,
        *,
        jobs: int = 1,
    ) -> None:
        self.lab, self.driver, self.executors = lab, driver, list(executors)
        self._spark, self._agents, self._jobs = spark, agents, jobs
        self._places = {host.name: (rack, host) for rack in lab.plan.rack_plans for host in rack.hosts}
        self._daemons: list[HostProcess] = []
        self._runs = 0

    def __enter__(self) -> SparkCluster:
        self.folder.mkdir(parents=True, mode=0o700)
        try:
            self._conf.mkdir()
            (self._conf / "log4j2.properties").write_text(_LOGGING)
            master = ["org.apache.spark.deploy.master.Master", "--host", self.address(self.driver)]
            self._daemons.append(self._daemon(self.driver, [*master, "--port", str(MASTER_PORT)]))
            room = ["--cores", str(self._jobs), "--memory", WORKER_MEMORY]
            worker = ["org.apache.spark.deploy.worker.Worker", *room]
            for host in self.executors:
                own = ["--host", self.address(host), "--work-dir", str(self._work(host))]
                self._daemons.append(self._daemon(host, [*worker, *own, self.master]))
            self._await_workers()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def folder(self) -> Path:
        """Where everything of this cluster is."""
        return registry.memory(self.lab.id) / "spark"

    @property
    def master(self) -> str:
        """The master's URL."""
        return f"spark://{self.address(self.driver)}:{MASTER_PORT}"

    def address(self, host: str) -> str:
        """Return a host's IPv4 address, by which Spark knows it."""
        return self._places[host][1].ip

    def submit(
        self,
        script: Path,
        arguments: Sequence[str] = (),
        conf: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> SparkRun:
        """Run a job from its start to its end; call `meanwhile` several times per second.

        The parameters are those of `start`. Raises `ProcessError` if the job fails; an exception during the wait ends
        the job.
        """
        before, busy, begun = self._uplinks(), _processor_ticks(), time.monotonic()
        job = self.start(script, arguments, conf, folder=folder)
        try:
            while job.wait(_POLL_SECONDS) is None:
                meanwhile()
            seconds = time.monotonic() - begun
        finally:
            job.stop()
        if job.status:
            raise ProcessError(f"{script.name} {_how_it_ended(job.status)}: {job.words.last()}")
        log = read_event_log(self.event_file(job))
        return SparkRun(
            seconds,
            job.words.output,
            job.words.errors,
            log,
            self._remote_reads(log),
            _difference(self._uplinks(), before),
            _idle_share(busy, _processor_ticks()),
        )

    def start(
        self,
        script: Path,
        arguments: Sequence[str] = (),
        conf: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
    ) -> HostProcess:
        """Start a job, which the caller must stop.

        `script` is Python or a jar, run in `folder` (by default an empty one). `conf` extends the settings of every
        job: one core for each executor, all of them present before the first task, an event log with all blocks.
        """
        self._runs += 1
        place = self.folder / "runs" / str(self._runs)
        (place / _EVENTS).mkdir(parents=True)
        own = {**self._conf_of_every_job(place / _EVENTS), **(conf or {})}
        submit = [str(self._spark.home / "bin" / "spark-submit"), "--master", self.master]
        options = [word for key, value in own.items() for word in ("--conf", f"{key}={value}")]
        command = [*submit, *options, str(script), *arguments]
        return self._start(self.driver, command, folder or place, OutputFiles(place / "output", place / "errors"))

    def event_file(self, job: HostProcess) -> Path:
        """Return the event log of a job that `start` returned; it is complete when the job has ended."""
        (file,) = (job.words.output.parent / _EVENTS).iterdir()
        return file

    def _conf_of_every_job(self, events: Path) -> dict[str, str]:
        return {
            "spark.cores.max": str(len(self.executors)),
            "spark.executor.cores": "1",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
            "spark.driver.maxResultSize": "0",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.logBlockUpdates.enabled": "true",
        }

    def _daemon(self, host: str, words: Sequence[str]) -> HostProcess:
        command = [str(self._spark.home / "bin" / "spark-class"), *words, "--webui-port", str(_PAGE_PORT)]
        kind = words[0].rpartition(".")[2].lower()
        log = self.folder / f"{kind}-{host}.log"
        self._work(host).mkdir(parents=True, exist_ok=True)
        return self._start(host, command, self._work(host), OutputFiles(log.with_suffix(".out"), log))

    def _start(self, host: str, command: Sequence[str], folder: Path, words: OutputFiles) -> HostProcess:
        return HostProcess(self.lab.host(host), command, self._environment(host), folder, words)

    def _environment(self, host: str) -> dict[str, str]:
        """Return our environment without settings of another Spark or Blast, plus name and address of this host."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OF_ANOTHER)}
        python, address = str(self._spark.python), self.address(host)
        local = self.folder / "local" / host
        local.mkdir(parents=True, exist_ok=True)
        return {
            **inherited,
            "SPARK_HOME": str(self._spark.home),
            "SPARK_CONF_DIR": str(self._conf),
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_HOSTNAME": address,
            "SPARK_LOCAL_DIRS": str(local),
            "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
            "BLAST_HOST": host,
            **self._agent_of(host),
        }

    def _agent_of(self, host: str) -> dict[str, str]:
        if self._agents is None or host not in self._agents.hosts:
            return {}
        return {"BLAST_AGENT": self._agents.address(host), "BLAST_FOLDER": str(self._agents.folder(host))}

    def _await_workers(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while self._workers() < len(self.executors):
            for daemon in self._daemons:
                if daemon.status is not None:
                    raise ProcessError(f"{daemon.name} ended with status {daemon.status}: {daemon.words.last()}")
            if time.monotonic() > deadline:
                raise ProcessError(f"Spark's workers had not all come to their master after {_READY_SECONDS:g} s")
            time.sleep(_POLL_SECONDS)

    def _workers(self) -> int:
        """Return the number of workers that the master knows."""

        def ask() -> int:
            page = http.client.HTTPConnection(self.address(self.driver), _PAGE_PORT, timeout=_READY_SECONDS)
            with closing(page):
                page.request("GET", "/json/")
                with page.getresponse() as answer:
                    known = json.load(answer)["workers"]
            return sum(worker["state"] == "ALIVE" for worker in known)

        with suppress(OSError, ValueError, http.client.HTTPException):
            return run_in_network_of(self.lab.host(self.driver).pid, ask)
        return 0

    def _remote_reads(self, log: SparkEventLog) -> RemoteReads:
        """Return the reads in the executors' logs; then remove their logs and libraries."""
        folders = [self._work(host) / log.application for host in self.executors]
        reads = read_remote_reads([log for folder in folders for log in folder.glob("*/stderr")])
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        return reads

    def _uplinks(self) -> tuple[Traffic, Traffic, Traffic]:
        rack, host = self._places[self.driver]
        counters = self.lab.counters
        return counters.access(rack.number, host.number), counters.uplink(rack.number), counters.optical(rack.number)

    def _stop(self) -> None:
        # All at once: each takes a while to end.
        for daemon in self._daemons:
            daemon.ask_to_end()
        for daemon in self._daemons:
            daemon.stop()
        self._daemons.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _work(self, host: str) -> Path:
        return self.folder / "work" / host

    @property
    def _conf(self) -> Path:
        return self.folder / "conf"


def _difference(after: tuple[Traffic, Traffic, Traffic], before: tuple[Traffic, Traffic, Traffic]) -> Uplinks:
    access, core, light = (one - other for one, other in zip(after, before, strict=True))
    # Counted at the ToR, which receives what the host sends.
    return Uplinks(access.received_bytes, core.sent_bytes, light.sent_bytes)


def _processor_ticks() -> tuple[int, int]:
    """Return all and idle ticks since the machine started (proc(5))."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]


def _idle_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    return (after[1] - before[1]) / max(1, after[0] - before[0])


def _how_it_ended(status: int) -> str:
    if status == -signal.SIGKILL:
        return "was killed, perhaps for want of memory (a driver and an executor for each rack): try fewer --racks"
    return f"ended with status {status}"
