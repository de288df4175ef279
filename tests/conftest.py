"""Guards for every test: the right `thrift`, and a stated reason where this machine cannot run a test."""

import ast
import asyncio
import functools
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import hypothesis
import pytest
import thrift

from tests.support.budgets import BudgetKeeper
from tests.support.costs import CostCounter, ModuleFolders
from tests.support.first_imports import import_share
from tests.support.groups import Groups, passed_groups
from tests.support.levels import Level, draw_fewer_examples, select, shuffle
from tests.support.needs import NEEDS, ROOT, missing
from tests.support.scheduler import group_of
from tests.support.transport.engines import BOTH, asking_for
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

    from blast_client import Client
    from tests.support.controller.etcd_server import Controllers, EtcdServer
    from tests.support.controller.memory_controller import MemoryController

EVERY_TEST = "BLAST_RUN_EVERY_TEST" in os.environ
PASSED = pytest.StashKey[frozenset[str]]()
PASSED_FILE = ROOT / ".tests-passed"
FOLDER = pytest.StashKey[Path]()
_LONGEST_REASON = 300
"""Characters of a failure's reason in one line."""

# Wall time means nothing on a shared machine, so there is no deadline; a failure in CI must be reproducible.
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


def require_apache_thrift(module: ModuleType) -> None:
    """End the run when `import thrift` found only our folder of that name, which Python takes for an empty package."""
    if getattr(module, "__file__", None) is None:
        pytest.exit("Apache Thrift is not installed: pip install thrift", returncode=pytest.ExitCode.USAGE_ERROR)


require_apache_thrift(thrift)


def without_collection(parse: Callable[..., ast.AST]) -> Callable[..., ast.AST]:
    """Return the function without garbage collection: a finalizer that prints a traceback would parse meanwhile.

    The two disturb each other before CPython 3.11.5 (issue 106905): SystemError, "AST constructor recursion depth".
    """

    @functools.wraps(parse)
    def wrapped(*arguments: object, **options: object) -> ast.AST:
        collects = gc.isenabled()
        gc.disable()
        try:
            return parse(*arguments, **options)
        finally:
            if collects:
                gc.enable()

    return wrapped


if sys.version_info < (3, 11, 5):
    ast.parse = without_collection(ast.parse)


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the factory of the event loop in which a coroutine runs."""
    return {"loop": VirtualTimeLoop if item.get_closest_marker("virtual_time") else asyncio.new_event_loop}


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without garbage collection, and exempt the collected objects from it.

    They are a million objects that live to the end; the garbage collector need not traverse them.
    """
    gc.disable()
    try:
        import_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Collect garbage after each file, so that a socket or task that it leaks is reported there and not later."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
    return result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the levels (`levels.py`), the budgets (`budgets.py`) and the groups (`groups.py`)."""
    group = parser.getgroup("blast", "levels and budgets")
    group.addoption("--level", choices=[level.value for level in Level], default=Level.TEST.value, help="tests to run")
    group.addoption("--resume", action="store_true", help="leave out the groups that passed in the last run")
    group.addoption("--order-seed", type=int, metavar="SEED", help="run files, and the tests of each, in random order")
    group.addoption("--costs", type=Path, metavar="FILE", help="write the costs of each test to a file of JSON lines")


# First, because pytest then brings tests together that share a fixture of their module.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the level, in the order that is asked for."""
    level = Level(config.option.level)
    items[:], others = select(level, items)
    config.hook.pytest_deselected(items=others)
    if config.option.order_seed is not None:
        shuffle(items, config.option.order_seed)
    if level is Level.TEST:
        draw_fewer_examples(items)
    if not EVERY_TEST:
        for item in items:
            _skip_unsupported(item)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the groups that have passed already, where the run is to go on from there."""
    if not (config.option.resume and collection_path.suffix == ".py"):
        return None
    file = collection_path.relative_to(config.rootpath).as_posix()
    return (group_of(file) in config.stash[PASSED]) or None


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


@pytest.fixture(autouse=True)
def _leaves_signals_alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that a test leaves no signal handler behind, and restore the handlers.

    A handler that is left behind can silently end a later test that interrupts itself.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    left = [number.name for number, handler in before.items() if signal.getsignal(number) is not handler]
    for number, handler in before.items():
        signal.signal(number, handler)
    if left and "own_signals" not in request.fixturenames:
        pytest.fail(
            f"changed the handlers of {', '.join(left)}; a test that sets handlers uses the fixture own_signals"
        )


@pytest.fixture
def own_signals() -> None:
    """Let a test set signal handlers; they are restored."""


@pytest.fixture(scope="session")
def etcd() -> "Iterator[EtcdServer]":
    """Yield an etcd that no test stops; each test uses its own prefix."""
    from tests.support.controller.etcd_server import EtcdServer

    if reason := missing("etcd"):
        pytest.skip(reason)
    # Not among the folders of modules, which go with their module.
    with EtcdServer(Path(tempfile.mkdtemp(prefix="etcd-"))).running() as server:
        yield server


@pytest.fixture
def controllers(etcd: "EtcdServer") -> "Iterator[Controllers]":
    """Yield controllers that share one journal in etcd."""
    from tests.support.controller.etcd_server import Controllers

    made = Controllers(etcd)
    yield made
    made.close()


@pytest.fixture(scope="module", params=BOTH)
def every_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the tests of a module with each engine in turn; the tests check which engine ran."""
    with asking_for(request.param):
        yield request.param


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> "Iterator[MemoryController]":
    """Serve a controller in memory that has one splitter; its `address` is where, and where commands look for it."""
    from tests.support.controller.memory_controller import MemoryController, serving

    handler = MemoryController(splitters=1)
    with serving(handler) as (_, host, port):
        handler.address = f"{host}:{port}"
        monkeypatch.setenv("BLAST_CONTROLLER", handler.address)
        yield handler


@pytest.fixture
def client(controller: "MemoryController") -> "Iterator[Client]":
    """Connect a client to `controller`."""
    from blast_client import Client

    with Client(controller.address) as client:
        yield client


class FailureLines:
    """Prints a line for each failure when it happens, and once more at the very end.

    A run that is killed prints no summary, and of a long output often only the end is kept.
    """

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self.terminal = terminal
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = str(crash.message if crash else report.longrepr).partition("\n")[0]
            self.failed.append(f"{report.nodeid} ({report.when}): {reason[:_LONGEST_REASON]}")
            self.terminal.ensure_newline()
            self.terminal.write_line(f"FAILED {len(self.failed)}: {self.failed[-1]}")

    def pytest_unconfigure(self) -> None:
        for line in self.failed:
            self.terminal.write_line(f"FAILED: {line}")


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give this process a temporary folder of its own, before anything is put into one."""
    worker = getattr(config, "workerinput", None)
    config.stash[FOLDER] = _temporary_folder(config, worker["workerid"] if worker else None)


# The last one to be configured: the terminal's plugin is there.
@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and register what counts costs and collects reports."""
    config.addinivalue_line("markers", "test_all: costs more than `make test` may; runs in make test-all")
    config.addinivalue_line("markers", "component: the one test of a real component's promise; runs in make test")
    for need in NEEDS:
        config.addinivalue_line("markers", f"{need.name}: needs {need.help}")
    config.stash[PASSED] = passed_groups(PASSED_FILE) if config.option.resume else frozenset()
    is_worker = hasattr(config, "workerinput")
    if not is_worker:
        _collect_reports(config)
    if is_worker or not config.option.numprocesses:
        config.pluginmanager.register(CostCounter(config.stash[FOLDER]))
        config.pluginmanager.register(ModuleFolders(config.stash[FOLDER] / "t"))


def _temporary_folder(config: pytest.Config, worker: str | None) -> Path:
    """Make the folder in which this process and its children keep their files; a worker's is in that of the run."""
    folder = Path(tempfile.gettempdir(), worker) if worker else Path(tempfile.mkdtemp(prefix="blast-"))
    folder.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    config.option.basetemp = str(folder / "t")
    return folder


def _collect_reports(config: pytest.Config) -> None:
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is None:
        return
    level = Level(config.option.level)
    config.pluginmanager.register(FailureLines(terminal))
    config.pluginmanager.register(BudgetKeeper(level, config.stash[FOLDER], config.option.costs))
    if level is Level.ALL:
        if not config.option.resume:
            PASSED_FILE.unlink(missing_ok=True)
        config.pluginmanager.register(Groups(terminal, PASSED_FILE))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the run's temporary folder, unless failed tests have left files there to look at."""
    folder = config.stash.get(FOLDER, None)
    if folder is None or hasattr(config, "workerinput"):
        return
    if any(folder.rglob("test_*")):
        print(f"Files of failed tests: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a file that is skipped as a whole, where every test must run."""
    report = yield
    if EVERY_TEST and report.skipped:
        report.outcome, report.longrepr = "failed", f"left out where every test must run: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where every test must run, one that is left out has failed."""
    report = yield
    if _must_run(item) and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"left out where every test must run: {report.longrepr}"
    return report


def _must_run(item: pytest.Item) -> bool:
    return EVERY_TEST and item.get_closest_marker("published") is None


def _skip_unsupported(item: pytest.Item) -> None:
    for need in NEEDS:
        if item.get_closest_marker(need.name) and (reason := missing(need.name)):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "Scheduling":
    """Give out whole files, by what they need: see `scheduler.py`."""
    from tests.support.scheduler import NeedsScheduling

    return NeedsScheduling(config, log)
