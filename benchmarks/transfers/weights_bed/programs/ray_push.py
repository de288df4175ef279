"""The head of a Ray cluster. On `small` or `weights` it puts these, and an actor on every other node gets them.

    ray_push.py FILE ADDRESS NODES STORE_BYTES

The nodes have the resources h1, h2, …, one each.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import ray  # type: ignore[import-not-found]
from weights import digest_of_layers, layers, print_event


class Worker:
    """An actor that receives weights."""

    def hold(self, references: list[Any]) -> tuple[float, int]:
        """Get the weights and read every byte; return the time and the checksum."""
        found = digest_of_layers(ray.get(references[0]))
        return time.monotonic(), found


def main() -> None:
    """Push until standard input ends."""
    source, address, nodes, store = sys.argv[1:]
    options = {"include_dashboard": False, "logging_level": "warning", "_node_ip_address": address}
    ray.init("local", num_cpus=1, object_store_memory=int(store), **options)
    print_event("head", address=ray.get_runtime_context().gcs_address)
    models = {name: layers(source, name) for name in ("small", "weights")}
    worker = ray.remote(num_cpus=0)(Worker)
    workers = [worker.options(resources={f"h{node}": 1}).remote() for node in range(1, int(nodes) + 1)]
    ray.get([worker.hold.remote([ray.put({})]) for worker in workers])
    print_event("ready")
    for line in sys.stdin:
        model = models[line.strip()]
        began = time.monotonic()
        # In a list, because Ray resolves a plain reference before it calls the method.
        put = ray.put(model)
        print_event("held", began=began, held=ray.get([worker.hold.remote([put]) for worker in workers]))
        del put


if __name__ == "__main__":
    main()
