"""A Spark job for tests, without any code of Blast: it executes commands, lines of JSON, that create broadcasts."""

import hashlib
import json
import os
import sys

from pyspark import SparkConf, SparkContext


def digest(_):
    """Return the digest of the value, with the process."""
    yield hashlib.sha256(values[-1].value).hexdigest(), os.getppid()


context = SparkContext(conf=SparkConf())
values = []


def executors():
    """Return the number of executors; the list also contains the driver."""
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1


def broadcast(megabytes):
    """Broadcast incompressible data, read it on all executors, and compare the digests."""
    data = os.urandom(int(megabytes * 1e6))
    values.append(context.broadcast(data))
    tasks = 2 * max(1, executors())
    found = context.parallelize(range(tasks), tasks).mapPartitions(digest).collect()
    return {"equal": {sent for sent, _ in found} == {hashlib.sha256(data).hexdigest()}, "tasks": len(found)}


def unpersist():
    """Unpersist the last broadcast."""
    values.pop().unpersist(blocking=True)
    return {}


def destroy():
    """Destroy the last broadcast."""
    values.pop().destroy()
    return {}


print(json.dumps({"application": context.applicationId}), flush=True)
for line in sys.stdin:
    command, *arguments = json.loads(line)
    act = {"broadcast": broadcast, "unpersist": unpersist, "destroy": destroy, "executors": executors}[command]
    print(json.dumps(act(*arguments)), flush=True)
context.stop()
