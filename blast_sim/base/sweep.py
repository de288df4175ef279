"""Many cells: on all cores of this machine or on a Dask cluster, each result kept as soon as it is there."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from blast_base.extras import how_to_install
from blast_sim.base.files import whole_or_not
from blast_sim.base.provenance import Origin, Provenance, Recording, command_line, with_provenance
from blast_sim.base.report import Row
from blast_sim.base.worker_processes import computed
from blast_sim.base.wrong_input import InputError, PluginFailedError

CONNECT_SECONDS = 10
"""A scheduler that does not answer is probably the wrong address."""


class NoSchedulerError(Exception):
    """The cluster cannot be used: Dask is not installed, or its address does not answer."""


class SweepCell(Protocol):
    """One simulation with all choices made. It can be pickled."""

    @property
    def key(self) -> str:
        """A name from the cell's whole content, without fields that do not affect its result."""

    @property
    def title(self) -> str:
        """A title for readers of a stored result."""

    @property
    def load(self) -> float:
        """The estimated duration, relative to other cells."""

    @property
    def origin(self) -> Origin:
        """The request that gives the same result again."""


C = TypeVar("C", bound=SweepCell)
Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a cell has no result."""

    reason: str


Result = list[Row] | Failure
Tried = tuple[Result, Provenance]


class Spread(Protocol):
    """A function that processes items in parallel, and yields the place and result of each."""

    def __call__(
        self, work: Callable[[Item], Made], items: Sequence[Item], processes: int, /
    ) -> Generator[tuple[int, Made], None, None]:
        """Yield the place and result of each item; stop the work when the generator is closed."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of cells: `processes` on this machine by `spread` (1: in this process), or a scheduler's cluster."""

    processes: int = 1
    scheduler: str | None = None
    spread: Spread = computed


class Kept:
    """Results of cells in a folder, a file each, named by the cell's content. Without a folder nothing is kept.

    A file is {"provenance": {…}, "title": "…", "rows": […]}; the machine and the times are those of the worker.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, cell: SweepCell) -> list[Row] | None:
        """Return the stored result of this cell. Raises InputError for an invalid file."""
        path = self._path(cell)
        if path is None or not path.exists():
            return None
        try:
            rows: list[Row] = json.loads(path.read_bytes())["rows"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path} is no result of a cell: remove it") from None
        return rows

    def put(self, cell: SweepCell, rows: list[Row], provenance: Provenance) -> None:
        """Keep a result: the file is there whole or not at all, whatever happens."""
        path = self._path(cell)
        if path is not None:
            record = with_provenance(replace(provenance, command=command_line()), {"title": cell.title, "rows": rows})
            with whole_or_not(path) as unfinished:
                unfinished.write_text(json.dumps(record), encoding="utf-8")

    def clear(self) -> None:
        """Forget all."""
        for path in self._folder.glob("*.json") if self._folder is not None else ():
            path.unlink()

    def _path(self, cell: SweepCell) -> Path | None:
        return None if self._folder is None else self._folder / f"{cell.key}.json"


def run_cells(
    work: Callable[[C], list[Row]],
    cells: Sequence[C],
    workers: Workers,
    kept: Kept,
    progress: Callable[[float], object] = lambda done: None,
) -> list[Result]:
    """Return the result of `work`, or a Failure, for every cell in order; stored results are not computed again.

    Raises NoSchedulerError, InputError, WorkerDiedError. `progress` is called with the number of further cells done.
    `work` must be importable if it runs on a cluster or in other processes.
    """
    results: dict[int, Result] = {}
    for place, cell in enumerate(cells):
        rows = kept.get(cell)
        if rows is not None:
            results[place] = rows
    progress(len(results))
    # The longest first, so that no core is left with a long one at the end.
    missing = sorted((place for place in range(len(cells)) if place not in results), key=lambda n: -cells[n].load)
    with closing(_results(partial(_tried, work), [(n, cells[n]) for n in missing], workers)) as coming:
        for place, (result, provenance) in coming:
            results[place] = result
            if not isinstance(result, Failure):
                kept.put(cells[place], result, provenance)
            progress(1)
    return [results[place] for place in range(len(cells))]


def _tried(work: Callable[[C], list[Row]], cell: C) -> Tried:
    """Run a cell on a worker; return its result, or the reason why it has none."""
    recording = Recording()
    result: Result
    try:
        result = work(cell)
    except (PluginFailedError, InputError) as error:
        result = Failure(str(error))
    except Exception as error:  # noqa: BLE001 - one cell must not take the others with it, whatever is wrong in it
        result = Failure(f"{type(error).__name__}: {error}")
    # In threads of one process no cell has CPU time of its own.
    alone = threading.current_thread() is threading.main_thread()
    return result, recording.provenance(cell.origin, alone)


def _results(
    tried: Callable[[C], Tried], cells: Sequence[tuple[int, C]], workers: Workers
) -> Generator[tuple[int, Tried], None, None]:
    if workers.scheduler is None and (workers.processes == 1 or len(cells) < 2):
        for place, cell in cells:
            yield place, tried(cell)
        return
    if workers.scheduler is None:
        for number, result in workers.spread(tried, [cell for _, cell in cells], workers.processes):
            yield cells[number][0], result
        return
    with _cluster(workers.scheduler) as cluster:
        futures: dict[Future[Tried], int] = {cluster.submit(tried, cell): place for place, cell in cells}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            # An aborted run must not wait for cells that have not begun.
            for future in futures:
                future.cancel()


@contextmanager
def _cluster(scheduler: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise NoSchedulerError(f"--scheduler needs Dask: {how_to_install('cluster')}") from None
    try:
        client = Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise NoSchedulerError(f"no Dask scheduler answers at {scheduler}: {error}") from error
    with client, client.get_executor(pure=False) as pool:
        yield pool
