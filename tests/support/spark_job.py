"""A Spark job for tests: it broadcasts what it is told to by lines of JSON, and knows nothing of Blast."""

import hashlib
import json
import os
import sys

from pyspark import SparkConf, SparkContext


def digest(_):
    """Of the value, and the process that has it."""
    yield hashlib.sha256(values[-1].value).hexdigest(), os.getppid()


context = SparkContext(conf=SparkConf())
values = []


def executors():
    """How many there are; the list has the driver too."""
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1


def broadcast(megabytes):
    """Broadcast so much that cannot be compressed, have it read everywhere, and compare."""
    data = os.urandom(int(megabytes * 1e6))
    values.append(context.broadcast(data))
    tasks = 2 * max(1, executors())
    found = context.parallelize(range(tasks), tasks).mapPartitions(digest).collect()
    return {"equal": {sent for sent, _ in found} == {hashlib.sha256(data).hexdigest()}, "tasks": len(found)}


def unpersist():
    """The last one."""
    values.pop().unpersist(blocking=True)
    return {}


def destroy():
    """The last one."""
    values.pop().destroy()
    return {}


print(json.dumps({"application": context.applicationId}), flush=True)
for line in sys.stdin:
    what, *arguments = json.loads(line)
    act = {"broadcast": broadcast, "unpersist": unpersist, "destroy": destroy, "executors": executors}[what]
    print(json.dumps(act(*arguments)), flush=True)
context.stop()
