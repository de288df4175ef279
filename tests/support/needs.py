"""The requirements of tests, one marker each: a reason if missing, the set-up that installs it, a limit of concurrency.

A module declares its needs by these markers; the scheduler (`scheduler.py`) and the levels (`levels.py`) follow them.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Need:
    """A need: its marker and help, why a machine cannot satisfy it (None if it can), and its place among levels.

    `with_test` means that the set-up of `make test` installs it; all other needs belong to `make test-all`. Up to
    `at_once` modules with this need run at the same time.
    """

    name: str
    help: str
    missing: Callable[[], str | None]
    with_test: bool = False
    at_once: int = 2


def _succeeds(*command: str) -> bool:
    return (
        shutil.which(command[0]) is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


def _lab() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    if not _succeeds("unshare", "--net", "true"):
        return "needs the right to create network namespaces (a machine or a privileged container)"
    if not _succeeds("ovs-vsctl", "--timeout=5", "get", "Open_vSwitch", ".", "datapath_types"):
        return "needs a running Open vSwitch: scripts/setup lab"
    return None if importlib.util.find_spec("mininet") else "needs Mininet: scripts/setup lab"


def _etcd() -> str | None:
    return None if shutil.which("etcd") else "needs etcd: scripts/setup test"


def _redis() -> str | None:
    return None if shutil.which("redis-server") else "needs Redis: scripts/setup test"


def _spark() -> str | None:
    if not (ROOT / ".venv-spark").is_dir():
        return "needs Spark in .venv-spark: scripts/setup all"
    return None if shutil.which("java") else "needs Java: scripts/setup all"


def _compiled() -> str | None:
    from blast_transport.base.engines import lacking

    return lacking() or None


def _browser() -> str | None:
    if shutil.which("chromium") is None:
        return "needs Chromium: scripts/setup all"
    return None if importlib.util.find_spec("playwright") else "needs Playwright: scripts/setup all"


def _tools(label: str, *names: str) -> Callable[[], str | None]:
    return lambda: None if all(map(shutil.which, names)) else f"needs {label}: scripts/setup all"


def _folder(label: str, name: str) -> Callable[[], str | None]:
    return lambda: None if (ROOT / name).is_dir() else f"needs {label} in {name}: scripts/setup all"


def _library(*names: str) -> Callable[[], str | None]:
    return lambda: None if all(map(importlib.util.find_spec, names)) else f"needs {names[0]}: scripts/setup all"


def _command(label: str, *words: str) -> Callable[[], str | None]:
    return lambda: None if _succeeds(*words) else f"needs {label}: scripts/setup all"


NEEDS = (
    Need("lab", "root, Open vSwitch and Mininet", _lab, with_test=True),
    Need("etcd", "etcd", _etcd, with_test=True),
    Need("redis", "Redis", _redis, with_test=True),
    Need("cc", "a C compiler", _tools("a C compiler", "cc"), at_once=8),
    Need("compiled", "the compiled engine", _compiled, at_once=8),
    Need(
        "rust", "Rust and the crates of this project", _command("Rust 1.85", str(ROOT / "scripts/cargo"), "--version")
    ),
    Need("java", "a JDK and Maven", _tools("a JDK and Maven", "javac", "mvn"), at_once=1),
    Need("spark", "Spark, in an environment of its own", _spark, at_once=1),
    Need("ryu", "ryu 4.34, in an environment of its own", _folder("ryu", ".venv-ryu")),
    Need("torch", "PyTorch, in the system's Python", _command("PyTorch", "/usr/bin/python3", "-c", "import torch")),
    Need("browser", "Chromium, driven by Playwright", _browser, at_once=1),
    Need("distributed", "Dask", _library("distributed")),
    Need("numba", "numba", _library("numba"), at_once=8),
    Need("peers", "pygnmi, ncclient and libyang", _library("pygnmi", "ncclient", "oopt_gnpy_libyang")),
    Need("pyarrow", "pyarrow", _library("pyarrow"), at_once=8),
    Need(
        "prometheus",
        "Prometheus and Alertmanager",
        _tools("Prometheus and Alertmanager", "prometheus", "promtool", "prometheus-alertmanager", "amtool"),
    ),
    Need("network", "the package index, over the network", lambda: None),
    Need("bare", "root, to make a bare Debian", lambda: None if os.geteuid() == 0 else "needs root", at_once=1),
)
BY_NAME = {need.name: need for need in NEEDS}


@functools.cache
def missing(name: str) -> str | None:
    """Return why this machine cannot satisfy the need of that name, or None."""
    return BY_NAME[name].missing()
