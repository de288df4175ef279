"""Takes part in broadcasts of PyTorch's gloo, from rank 0, whenever it reads `small` or `weights`.

    gloo_rank.py FILE tcp://ADDRESS:PORT RANKS RANK whole|layers

Who receives has memory for all of it that was touched before, as a worker with older weights has.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
import torch.distributed as group
from weights import digest, held, say, size_of, spans


def main() -> None:
    """Broadcast until nobody wants more."""
    source, meeting, ranks, rank, way = sys.argv[1:]
    torch.set_num_threads(1)
    held_here = {what: _memory(source, what, sends=rank == "0") for what in ("small", "weights")}
    group.init_process_group("gloo", init_method=meeting, world_size=int(ranks), rank=int(rank))
    group.barrier()
    say("ready")
    for line in sys.stdin:
        tensor = held_here[line.strip()]
        began = time.monotonic()
        for _, begin, length in spans(tensor.numel()) if way == "layers" else [("", 0, tensor.numel())]:
            group.broadcast(tensor[begin : begin + length], 0)
        if rank == "0":
            say("sent", began=began)
        else:
            held(digest([tensor.numpy()]))


def _memory(source: str, what: str, *, sends: bool) -> torch.Tensor:
    size = size_of(source, what)
    return torch.from_numpy(np.fromfile(source, np.uint8, size) if sends else np.full(size, 1, np.uint8))


if __name__ == "__main__":
    main()
