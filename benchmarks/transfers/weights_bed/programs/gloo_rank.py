"""Participates in broadcasts of PyTorch's gloo from rank 0; `small` or `weights` on standard input starts one.

    gloo_rank.py FILE tcp://ADDRESS:PORT RANKS RANK whole|layers

Receivers touch their memory before the broadcast, as a worker with older weights has.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
import torch.distributed as group
from weights import digest, held, print_event, size_of, spans


def main() -> None:
    """Broadcast until standard input ends."""
    source, meeting, ranks, rank, split = sys.argv[1:]
    torch.set_num_threads(1)
    tensors = {}
    for name in ("small", "weights"):
        size = size_of(source, name)
        array = np.fromfile(source, np.uint8, size) if rank == "0" else np.full(size, 1, np.uint8)
        tensors[name] = torch.from_numpy(array)
    group.init_process_group("gloo", init_method=meeting, world_size=int(ranks), rank=int(rank))
    group.barrier()
    print_event("ready")
    for line in sys.stdin:
        tensor = tensors[line.strip()]
        began = time.monotonic()
        for _, begin, length in spans(tensor.numel()) if split == "layers" else [("", 0, tensor.numel())]:
            group.broadcast(tensor[begin : begin + length], 0)
        if rank == "0":
            print_event("sent", began=began)
        else:
            held(digest([tensor.numpy()]))


if __name__ == "__main__":
    main()
