"""Claims about what readers cost on a fabric of 1,000 racks with 50 light trees, in one process and no socket:

publish   the next snapshot after each event of a request's life: <= 20 us of the deciding thread
fabric    an answer from scratch, one after a tree has come or gone, and one where nothing has changed
elements  an answer, which nobody keeps
encode    the fabric's answer into bytes

.venv/bin/python -m benchmarks.readings
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from benchmarks.machine import describe
from blast_api import ttypes
from blast_controller.core.model.events import FinishAsked
from blast_controller.core.snapshot.publisher import Publisher
from blast_controller.rpc import convert
from blast_controller.rpc.fabric_reading import FabricReading
from tests.support.core import World, key_of, make_fabric, multicast, ready_world

RACKS, TREES = 1000, 50


def timed(work: Callable[[], object], times: int = 20) -> float:
    """Median seconds."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def lit_world() -> World:
    """Every splitter serves a group."""
    world = ready_world(make_fabric(RACKS, [4] * TREES))
    for number in range(TREES):
        begin(world, f"first-{number}", number)
    return world


def begin(world: World, key: str, place: int) -> None:
    """Light for a group of three racks."""
    racks = [f"r{5 * place + rack}h1" for rack in (1, 2, 3)]
    world.granted(multicast(key, racks[0], racks[1:]))


def lives(world: World, after: Callable[[], object]) -> None:
    """Each tree's request is over and another comes, with a look after each."""
    for number in range(TREES):
        world.handle(FinishAsked(key_of(f"first-{number}"), 0))
        world.settle()
        after()
        begin(world, f"second-{number}", number)
        after()


def publishing() -> dict[str, float]:
    """Microseconds of the processor that each new snapshot takes."""
    world, found = lit_world(), []
    publish = Publisher.publish

    def measured(*arguments: object) -> None:
        began = time.thread_time()
        publish(*arguments)
        found.append(time.thread_time() - began)

    Publisher.publish = measured
    try:
        lives(world, lambda: None)
    finally:
        Publisher.publish = publish
    ordered = sorted(found)
    named = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    return {"n": len(found), **{name: round(ordered[int(q * len(found))] * 1e6, 1) for name, q in named.items()}}


def encoded(answer: ttypes.FabricStatus) -> bytes:
    """The answer as it is sent."""
    buffer = TMemoryBuffer()
    answer.write(TBinaryProtocolAccelerated(buffer))
    return buffer.getvalue()


def reading() -> dict[str, float]:
    """Milliseconds."""
    world, kept, changed = lit_world(), FabricReading(), []
    scratch = timed(lambda: FabricReading().read(world.core.snapshot, None))
    answer = kept.read(world.core.snapshot, None)
    unchanged = timed(lambda: kept.read(world.core.snapshot, None))
    elements = timed(lambda: convert.elements(world.core.snapshot))
    encode = timed(lambda: encoded(answer))
    lives(world, lambda: changed.append(timed(lambda: kept.read(world.core.snapshot, None), 1)))
    found = {
        "fabric_from_scratch": scratch,
        "fabric_changed": statistics.median(changed),
        "fabric_unchanged": unchanged,
        "elements": elements,
        "encode_fabric": encode,
    }
    return {name: round(seconds * 1000, 3) for name, seconds in found.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = {"input": f"{RACKS} racks, {TREES} trees", "publish_us": publishing(), "reading_ms": reading()}
    if args.json:
        print(json.dumps({"machine": describe(), "rows": rows}, indent=2))
        return
    print(describe())
    for name, value in rows.items():
        print(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")


if __name__ == "__main__":
    main()
