"""Several runs at once. Each is a process of its own already, so a thread is enough to wait for it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from blast_sim.base.sweep import Item, Made, Spread


def at_once(stop: Callable[[], None]) -> Spread:
    """Return a spread that works in threads; `stop` must end pending work when the results are no longer needed."""

    def spread(
        work: Callable[[Item], Made], items: Sequence[Item], count: int
    ) -> Generator[tuple[int, Made], None, None]:
        with ThreadPoolExecutor(count) as pool:
            places = {pool.submit(work, item): place for place, item in enumerate(items)}
            try:
                for future in as_completed(places):
                    yield places[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                stop()
                raise

    return spread
