"""State of Spark in the driver: hosts of executors, and conditions that exclude Blast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blast_base.endpoint import parse_endpoint
from blast_client.api.base_error import InvalidArgumentError
from blast_client.spark.reasons import Reason

if TYPE_CHECKING:
    from pyspark import SparkContext

_GUARDED = (
    "spark.authenticate",
    "spark.io.encryption.enabled",
    "spark.network.crypto.enabled",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
)
"""Settings that protect all data that Spark moves; a file on the hosts of executors would not be protected."""


def check_context(sc: object) -> None:
    """Raise InvalidArgumentError unless this is a running SparkContext."""
    from pyspark import SparkContext

    if ".connect." in f"{type(sc).__module__}.":
        raise InvalidArgumentError(
            "the client of Spark Connect has neither a JVM nor broadcasts: use the plugin on the server instead"
        )
    if not isinstance(sc, SparkContext):
        raise InvalidArgumentError(f"sc must be a SparkContext (spark.sparkContext), not a {type(sc).__name__}")
    if is_stopped(sc):
        raise InvalidArgumentError("this SparkContext was stopped: create another")


def is_stopped(sc: SparkContext) -> bool:
    """Return True if a context was stopped."""
    return sc._jsc is None


def obstacle(sc: SparkContext) -> tuple[Reason, str] | None:
    """Return the reason why this application cannot use Blast, with its text, or None."""
    if sc._jsc.sc().isLocal():
        return Reason.LOCAL, "driver and executors are one process"
    conf = sc.getConf()
    for key in _GUARDED:
        if str(conf.get(key, "false")).lower() == "true":
            return Reason.ENCRYPTED, f"{key} is on"
    return None


def executor_hosts(sc: SparkContext) -> frozenset[str]:
    """Return the hosts that have executors, by their names in Spark; none for a stopped context."""
    from py4j.protocol import Py4JError

    jsc = sc._jsc
    if jsc is None:
        return frozenset()
    try:
        # Compare host and port, since the driver's host may have executors, too.
        driver = jsc.sc().statusStore().executorSummary("driver").hostPort()
        blocks = str(jsc.sc().getExecutorMemoryStatus().keySet().mkString(" ")).split()
    except (Py4JError, OSError, AttributeError):
        # The context is stopping, or its JVM has exited.
        return frozenset()
    return frozenset(parse_endpoint(one).host for one in blocks if one != driver)


def driver_address(sc: SparkContext) -> tuple[str, str]:
    """Return the address of the driver for executors, and the address on which it listens."""
    conf = sc.getConf()
    host = str(conf.get("spark.driver.host", "127.0.0.1"))
    return host.strip("[]"), str(conf.get("spark.driver.bindAddress", host)).strip("[]")
