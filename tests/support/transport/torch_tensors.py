"""Checks for an interpreter with PyTorch: `python3 -m tests.support.transport.torch_tensors`.

It prints the names of the passed checks, as one JSON list.
"""

# Nothing else of the tests may be needed here: pytest itself is not there.
from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from blast_client.api.base_error import InvalidArgumentError
from blast_client.objects.encoding import opened
from tests.support.transport.objects import there

Tensors = dict[str, Any]


def same(one: Any, other: Any) -> bool:
    bytes_of = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other)]
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(*bytes_of)


def single_tensors(folder: Path) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.complex64):
        for shape in ((2, 3), (4,), (1, 0, 2), ()):
            tensor = (torch.rand(shape) * 100).to(dtype)
            got = there(folder, tensor)
            assert isinstance(got, torch.Tensor)
            assert same(got.reshape(-1), tensor.reshape(-1)) and got.shape == tensor.shape, (dtype, shape)
    assert torch.equal(there(folder, torch.tensor([True, False])), torch.tensor([True, False]))


def not_in_one_piece(folder: Path) -> None:
    tensor = torch.arange(24.0).reshape(2, 3, 4)
    for view in (tensor.permute(2, 0, 1), tensor[:, ::2], tensor[1], tensor.requires_grad_()):
        assert torch.equal(there(folder, view), view)


def a_state_dict(folder: Path) -> None:
    def model() -> Any:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.BatchNorm1d(20), torch.nn.Linear(20, 5))

    given, made = model(), model()
    given(torch.rand(8, 30))
    state = there(folder, given.state_dict())
    assert all(same(state[name], tensor) for name, tensor in given.state_dict().items())
    assert list(state) and state.keys() == given.state_dict().keys()
    made.load_state_dict(state)
    given.eval(), made.eval()
    data = torch.rand(4, 30)
    assert torch.equal(given(data), made(data))


def tensors_that_share_memory_arrive_both(folder: Path) -> None:
    tensor = torch.arange(6.0)
    got = there(folder, {"a": tensor, "b": tensor})
    assert torch.equal(got["a"], tensor) and torch.equal(got["b"], tensor)


def changes_stay_private(folder: Path) -> None:
    first = there(folder, torch.zeros(1000), "z")
    first += 1
    assert there(folder, torch.zeros(1000), "z").sum() == 0
    assert first.sum() == 1000


def sent_from_where_it_lies(_: Path) -> None:
    tensor = torch.zeros(1000)
    with opened({"a": tensor}) as (source, _suffix):
        tensor[-1] = 3.0
        tail = bytearray(4)
        source.read((source.size or 0) - 4, memoryview(tail))
    assert np.frombuffer(tail, "f4")[0] == 3.0


def one_library_for_the_other(folder: Path) -> None:
    got = there(folder, {"a": torch.arange(5)}, library="numpy")
    assert isinstance(got["a"], np.ndarray) and (got["a"] == np.arange(5)).all()
    got = there(folder, {"a": np.arange(5)}, library="torch")
    assert torch.equal(got["a"], torch.arange(5))


def refused(_: Path) -> None:
    mixed: Tensors = {"a": torch.zeros(1), "b": np.zeros(1)}
    for data, sentence in (
        (torch.zeros(1, device="meta"), "is on meta"),
        (torch.zeros(2, 2).to_sparse(), "does not support the tensor"),
        (torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.qint8), "does not support the tensor"),
        (torch.zeros(1, dtype=torch.complex128), "does not support the tensor"),
        ({"a": torch.zeros(1), "step": 5}, "'step' is a int"),
        (mixed, "either tensors or NumPy arrays"),
    ):
        try:
            with opened(data):
                raise AssertionError(f"taken, though {sentence}")
        except InvalidArgumentError as error:
            assert sentence in str(error), error


CHECKS: tuple[Callable[[Path], None], ...] = (
    single_tensors,
    not_in_one_piece,
    a_state_dict,
    tensors_that_share_memory_arrive_both,
    changes_stay_private,
    sent_from_where_it_lies,
    one_library_for_the_other,
    refused,
)


def main() -> None:
    for check in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder))
    sys.stdout.write(json.dumps([check.__name__ for check in CHECKS]))


if __name__ == "__main__":
    main()
