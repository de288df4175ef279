"""Garbage collection that skips old objects, tested in another process because it changes the interpreter."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, weakref
from blast_controller.process.garbage import COLLECT_AFTER, GarbageCollection, look_through_everything

class Knot:
    def __init__(self):
        self.self = self

looks = []
gc.callbacks.append(lambda phase, info: looks.append(info["generation"]) if phase == "start" else None)
before = gc.get_threshold()
collection = GarbageCollection()
collection.start()

# A new unreachable cycle is freed without an explicit collection.
knot = weakref.ref(Knot())
fill = [[] for _ in range(COLLECT_AFTER + 1)]
assert knot() is None

# Live objects are scanned once, whatever their number.
held = [[n] for n in range(20 * COLLECT_AFTER)]
assert gc.get_freeze_count() > 19 * COLLECT_AFTER, gc.get_freeze_count()
assert 2 not in looks[1:], looks

# An old cycle is freed when everything is scanned.
old = Knot()
fill = [[] for _ in range(2 * COLLECT_AFTER)]
old, knot = None, weakref.ref(old)
fill = [[] for _ in range(2 * COLLECT_AFTER)]
assert knot() is not None
look_through_everything()
assert knot() is None
assert gc.get_freeze_count() > 19 * COLLECT_AFTER

collection.stop()
assert gc.get_threshold() == before and gc.get_freeze_count() == 0
assert len(gc.callbacks) == 1
GarbageCollection().stop()
print("all is well")
"""


def test_collection_scans_live_objects_once_and_old_cycles_on_demand():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100, check=False)
    assert ran.stdout == "all is well\n", ran.stderr
