"""Takes part in broadcasts of PyTorch's gloo, from rank 0, when it reads `small` or `weights`.

    gloo_rank.py FILE tcp://ADDRESS:PORT RANKS RANK whole|layers

The memory of receivers was touched before, as in a worker with older weights.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
import torch.distributed as group
from weights import digest, held, say, size_of, spans


def main() -> None:
    """Broadcast until standard input ends."""
    source, meeting, ranks, rank, split = sys.argv[1:]
    torch.set_num_threads(1)
    tensors = {}
    for what in ("small", "weights"):
        size = size_of(source, what)
        array = np.fromfile(source, np.uint8, size) if rank == "0" else np.full(size, 1, np.uint8)
        tensors[what] = torch.from_numpy(array)
    group.init_process_group("gloo", init_method=meeting, world_size=int(ranks), rank=int(rank))
    group.barrier()
    say("ready")
    for line in sys.stdin:
        tensor = tensors[line.strip()]
        began = time.monotonic()
        for _, begin, length in spans(tensor.numel()) if split == "layers" else [("", 0, tensor.numel())]:
            group.broadcast(tensor[begin : begin + length], 0)
        if rank == "0":
            say("sent", began=began)
        else:
            held(digest([tensor.numpy()]))


if __name__ == "__main__":
    main()
