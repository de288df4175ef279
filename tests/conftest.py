"""Guards for every test: the right `thrift`, and a stated reason where this machine cannot run a test."""

import asyncio
import functools
import gc
import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import hypothesis
import pytest
import thrift

from tests.support.engines import BOTH, asking_for
from tests.support.first_imports import import_share
from tests.support.side_by_side import is_alone
from tests.support.unsteady import faults
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

    from tests.support.etcd_server import Controllers, EtcdServer

EVERY_TEST = "BLAST_RUN_EVERY_TEST" in os.environ
RYU_ENVIRONMENT = Path(__file__).parent.parent / ".venv-ryu"
SPARK_ENVIRONMENT = Path(__file__).parent.parent / ".venv-spark"
_LONGEST_REASON = 300
"""Characters of what is said in a line."""

# Wall time says nothing on a shared machine, so there is no deadline; a failure in CI must be found again by everyone.
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


def require_apache_thrift(module: ModuleType) -> None:
    """End the run when `import thrift` found only our folder of that name, which Python takes for an empty package."""
    if getattr(module, "__file__", None) is None:
        pytest.exit("Apache Thrift is not installed: pip install thrift", returncode=pytest.ExitCode.USAGE_ERROR)


require_apache_thrift(thrift)


def _succeeds(*command: str) -> bool:
    return (
        shutil.which(command[0]) is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


def _lab_lacks() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    if not _succeeds("unshare", "--net", "true"):
        return "needs the right to create network namespaces (a machine or a privileged container)"
    if not _succeeds("ovs-vsctl", "--timeout=5", "get", "Open_vSwitch", ".", "datapath_types"):
        return "needs a running Open vSwitch: scripts/setup lab"
    if importlib.util.find_spec("mininet") is None:
        return "needs Mininet: scripts/setup lab"
    return None


def _java_lacks() -> str | None:
    return None if shutil.which("javac") and shutil.which("mvn") else "needs a JDK and Maven: scripts/setup test"


def _ryu_lacks() -> str | None:
    return None if RYU_ENVIRONMENT.is_dir() else "needs ryu in .venv-ryu: scripts/setup test"


def _spark_lacks() -> str | None:
    if not SPARK_ENVIRONMENT.is_dir():
        return "needs Spark in .venv-spark: scripts/setup spark"
    return None if shutil.which("java") else "needs Java: scripts/setup spark"


def _torch_lacks() -> str | None:
    return None if _succeeds("/usr/bin/python3", "-c", "import torch") else "needs PyTorch: scripts/setup long"


def _rust_lacks() -> str | None:
    scripts = Path(__file__).parent.parent / "scripts"
    return None if _succeeds(str(scripts / "cargo"), "--version") else "needs Rust 1.85: scripts/setup test"


def _compiled_lacks() -> str | None:
    from blast_transport.base.engines import lacking

    return lacking() or None


def _browser_lacks() -> str | None:
    from tests.support.browser import lacks

    return lacks()


def _prometheus_lacks() -> str | None:
    tools = ("prometheus", "promtool", "prometheus-alertmanager", "amtool")
    return None if all(map(shutil.which, tools)) else "needs Prometheus and Alertmanager: scripts/setup long"


def _bare_lacks() -> str | None:
    return None if os.geteuid() == 0 else "needs root"


LACKS = {
    marker: functools.cache(lacks)
    for marker, lacks in {
        "lab": _lab_lacks,
        "bare": _bare_lacks,
        "prometheus": _prometheus_lacks,
        "java": _java_lacks,
        "rust": _rust_lacks,
        "compiled": _compiled_lacks,
        "ryu": _ryu_lacks,
        "spark": _spark_lacks,
        "torch": _torch_lacks,
        "browser": _browser_lacks,
    }.items()
}


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop in which a coroutine runs."""
    return {"loop": VirtualTimeLoop if item.get_closest_marker("virtual_time") else asyncio.new_event_loop}


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What collection makes stays to the end: a million objects, which no collection of garbage need look through."""
    gc.disable()
    try:
        import_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `make test-long` asks for."""
    parser.addoption("--long", action="store_true", help="run the tests that are marked long, and no others")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _refuse_too_many_unsteady(items)
    _leave_out_by_length(config, items)
    items.sort(key=lambda item: is_alone(item.nodeid))
    if not EVERY_TEST:
        for item in items:
            _skip_what_cannot_run(item)


def _leave_out_by_length(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long tests, or all others."""
    kept, left_out = [], []
    for item in items:
        wanted = (item.get_closest_marker("long") is not None) == config.option.long
        (kept if wanted else left_out).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def _refuse_too_many_unsteady(items: list[pytest.Item]) -> None:
    marks = {item.nodeid: item.get_closest_marker("unsteady") for item in items}
    wrong = faults({test: str(mark.args[0] if mark.args else "") for test, mark in marks.items() if mark is not None})
    if wrong:
        raise pytest.UsageError(*wrong)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


@pytest.fixture(autouse=True)
def _leaves_signals_alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """A handler that a test leaves behind may end, without a word, whichever test comes to interrupt itself."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    left = [number.name for number, handler in before.items() if signal.getsignal(number) is not handler]
    for number, handler in before.items():
        signal.signal(number, handler)
    if left and "own_signals" not in request.fixturenames:
        pytest.fail(f"left other handlers of {', '.join(left)}; what sets them may be told by the fixture own_signals")


@pytest.fixture
def own_signals() -> None:
    """For a test of what sets handlers: they are set back."""


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[EtcdServer]":
    """An etcd that nobody stops; whoever uses it takes a prefix of his own."""
    from tests.support import etcd_server

    if reason := etcd_server.lacks():
        pytest.skip(reason)
    with etcd_server.EtcdServer(tmp_path_factory.mktemp("etcd")).running() as server:
        yield server


@pytest.fixture
def controllers(etcd: "EtcdServer") -> "Iterator[Controllers]":
    """Controllers on one journal in etcd."""
    from tests.support.etcd_server import Controllers

    made = Controllers(etcd)
    yield made
    made.close()


@pytest.fixture(scope="module", params=BOTH)
def every_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The hosts of a module work by one engine, and then by the other; their tests say that they did."""
    with asking_for(request.param):
        yield request.param


class SaysInLines:
    """Says in one line what has failed, when it has, and once more at the very end.

    Who is ended from outside comes to no summary, and where a program reads along the summary holds what was compared,
    all of it: of a long output often nothing but the end is seen.
    """

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self.terminal = terminal
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = str(crash.message if crash else report.longrepr).partition("\n")[0]
            self.failed.append(f"{report.nodeid} ({report.when}): {why[:_LONGEST_REASON]}")
            self.terminal.ensure_newline()
            self.terminal.write_line(f"FAILED so far: {self.failed[-1]}")

    def pytest_unconfigure(self) -> None:
        for line in self.failed:
            self.terminal.write_line(f"FAILED: {line}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Where results come together, and nowhere else."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SaysInLines(terminal))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A whole file can be left out too."""
    report = yield
    if EVERY_TEST and report.skipped:
        report.outcome, report.longrepr = "failed", f"left out where every test must run: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where every test must run, one that is left out has failed; an unsteady one says what it is known for."""
    report = yield
    if _must_run(item) and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"left out where every test must run: {report.longrepr}"
    if report.failed and (mark := item.get_closest_marker("unsteady")):
        report.sections.append(("unsteady, and failed all the same", str(mark.args[0])))
    return report


def _must_run(item: pytest.Item) -> bool:
    return EVERY_TEST and item.get_closest_marker("published") is None


def _skip_what_cannot_run(item: pytest.Item) -> None:
    for marker, lacks in LACKS.items():
        if item.get_closest_marker(marker) and (reason := lacks()):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "Scheduling":
    """Give every other file to whichever worker is free, so that its fixtures are made once."""
    from tests.support.side_by_side import SideBySide

    return SideBySide(config, log)
