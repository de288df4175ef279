"""What the driver's Spark says of itself: where its executors are, and whether Blast may serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blast_client.base_error import WrongArgument
from blast_client.spark.reasons import Reason
from blast_transport.base.endpoint import parse_endpoint

if TYPE_CHECKING:
    from pyspark import SparkContext

_GUARDED = (
    "spark.authenticate",
    "spark.io.encryption.enabled",
    "spark.network.crypto.enabled",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
)
"""Each asks of everything that Spark moves what a file beside the executors would not keep to."""


def check_context(sc: object) -> None:
    """Raise WrongArgument unless it is a SparkContext that runs."""
    from pyspark import SparkContext

    if ".connect." in f"{type(sc).__module__}.":
        raise WrongArgument(
            "a Spark Connect session has neither the JVM nor broadcasts on its client: only the plugin, on the server,"
            " brings its data by Blast"
        )
    if not isinstance(sc, SparkContext):
        raise WrongArgument(f"sc must be a SparkContext (spark.sparkContext), and not a {type(sc).__name__}")
    if is_stopped(sc):
        raise WrongArgument("this SparkContext has been stopped")


def is_stopped(sc: SparkContext) -> bool:
    """Nothing is to be had from this context any more."""
    return sc._jsc is None


def obstacle(sc: SparkContext) -> tuple[Reason, str] | None:
    """Why nothing goes by Blast in this application, and in words; None if it may."""
    if sc._jsc.sc().isLocal():
        return Reason.LOCAL, "driver and executors are one process"
    conf = sc.getConf()
    for key in _GUARDED:
        if str(conf.get(key, "false")).lower() == "true":
            return Reason.ENCRYPTED, f"{key} is on"
    return None


def executor_hosts(sc: SparkContext) -> frozenset[str]:
    """The hosts that have executors now, as Spark calls them; none when it has been stopped."""
    from py4j.protocol import Py4JError

    jsc = sc._jsc
    if jsc is None:
        return frozenset()
    try:
        # By host and port: on the driver's host there may be executors as well.
        driver = jsc.sc().statusStore().executorSummary("driver").hostPort()
        blocks = str(jsc.sc().getExecutorMemoryStatus().keySet().mkString(" ")).split()
    except (Py4JError, OSError, AttributeError):
        # It is being stopped, or its JVM has gone.
        return frozenset()
    return frozenset(parse_endpoint(one).host for one in blocks if one != driver)


def driver_address(sc: SparkContext) -> tuple[str, str]:
    """Where executors reach the driver, and where it listens for them."""
    conf = sc.getConf()
    host = str(conf.get("spark.driver.host", "127.0.0.1"))
    return host.strip("[]"), str(conf.get("spark.driver.bindAddress", host)).strip("[]")
