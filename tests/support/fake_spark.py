# ruff: noqa: N802, N815 - the names are those of Spark
"""As much of a SparkContext as `blast_client.spark` asks of one, without a JVM; executors are where the test says."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType
from typing import Any

import pytest

DRIVER = "127.0.0.1:1"


class FakeBroadcast:
    """What `FakeContext.broadcast` gives: it pickles to a copy of the value, as Spark's does in effect."""

    def __init__(self, value: object) -> None:
        self.value = pickle.loads(pickle.dumps(value))
        self.calls: list[str] = []
        self._jbroadcast = object()

    def unpersist(self, blocking: bool = False) -> None:
        self.calls.append("unpersist")

    def destroy(self, blocking: bool = False) -> None:
        self.calls.append("destroy")


class FakeContext:
    """`executors` are the block managers of executors, as HOST:PORT."""

    def __init__(self, application: str, *executors: str, local: bool = False, **conf: str) -> None:
        self.applicationId = application
        self.executors = set(executors)
        self.conf = {"spark.driver.host": "127.0.0.1"} | {key.replace("_", "."): text for key, text in conf.items()}
        self.broadcasts: list[FakeBroadcast] = []
        self._jsc: Any = _Jsc(self, local)

    def getConf(self) -> dict[str, str]:
        return self.conf

    def broadcast(self, value: object) -> FakeBroadcast:
        self.broadcasts.append(FakeBroadcast(value))
        return self.broadcasts[-1]

    def stop(self) -> None:
        self._jsc = None


class _Jsc:
    """The JVM's objects, all in one."""

    def __init__(self, context: FakeContext, local: bool) -> None:
        self._context, self._local = context, local

    def isLocal(self) -> bool:
        return self._local

    def hostPort(self) -> str:
        return DRIVER

    def mkString(self, between: str) -> str:
        return between.join([DRIVER, *sorted(self._context.executors)])

    def executorSummary(self, executor: str) -> _Jsc:
        assert executor == "driver"
        return self

    def _itself(self) -> _Jsc:
        return self

    sc = statusStore = getExecutorMemoryStatus = keySet = _itself


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `pyspark` and `py4j` modules of which these are the classes."""
    pyspark, py4j, protocol = ModuleType("pyspark"), ModuleType("py4j"), ModuleType("py4j.protocol")
    pyspark.SparkContext = FakeContext  # type: ignore[attr-defined]
    protocol.Py4JError = type("Py4JError", (Exception,), {})  # type: ignore[attr-defined]
    for module in (pyspark, py4j, protocol):
        monkeypatch.setitem(sys.modules, module.__name__, module)
