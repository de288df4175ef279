"""Objects round trip to a receiver, in formats that other tools read and write."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from blast_client.api.base_error import InvalidArgumentError
from blast_client.objects.encoding import opened
from blast_client.objects.not_readable import UnreadableObjectError
from blast_client.objects.receiving import receive
from blast_transport.base.errors import SourceChangedError, WrongInputError
from tests.support.transport.objects import file_of, put, scratch, there

SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
TENSOR_TYPES = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8"]


def named(types: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    tensors = st.sampled_from(types).flatmap(lambda dtype: arrays.arrays(np.dtype(dtype), SHAPES))
    names = st.text(min_size=1, max_size=8).filter(lambda name: name.isprintable() and name != "__metadata__")
    return st.dictionaries(names, tensors, max_size=5)


def same(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("data", [b"", b"abc", bytearray(b"abc"), memoryview(b"abcdef")[::2], np.uint8([1, 2]).data])
def test_receive_returns_bytes_as_read_only_view(tmp_path: Path, data: Any) -> None:
    got = there(tmp_path, data)
    assert got == bytes(data)
    assert got.readonly


@settings(deadline=None)
@given(
    st.one_of(arrays.scalar_dtypes(), arrays.array_dtypes()).flatmap(lambda dtype: arrays.arrays(dtype, SHAPES)),
    st.sampled_from("CFAS"),
)
def test_arrays_of_all_types_shapes_and_orders_round_trip(array: Any, order: str) -> None:
    given_array = np.moveaxis(np.repeat(array[None], 2, 0), 0, -1)[..., 0] if order == "S" else array.copy(order)
    with scratch() as folder:
        assert same(there(folder, given_array), given_array)
        assert same(np.load(folder / "it.npy"), given_array), "NumPy reads the file as well"


def test_received_array_is_mapped_copy_on_write(tmp_path: Path) -> None:
    first, second = there(tmp_path, np.arange(1000.0)), receive("it", tmp_path, timeout=0)
    assert isinstance(first, np.memmap)
    first[0] = 7.0
    assert (first[0], second[0], receive("it", tmp_path, timeout=0)[0]) == (7.0, 0.0, 0.0)


@settings(deadline=None)
@given(named(TENSOR_TYPES))
def test_named_arrays_are_compatible_with_safetensors(tensors: dict[str, Any]) -> None:
    with scratch() as folder:
        got, theirs = there(folder, tensors), safetensors.numpy.load_file(folder / "it.safetensors")
        in_order = {key: np.asarray(one, order="C") for key, one in tensors.items()}
        safetensors.numpy.save_file(in_order, folder / "its.safetensors")
        read = receive("its", folder, timeout=0, library="numpy")
        for found in (got, theirs, read):
            assert found.keys() == tensors.keys()
            assert all(same(found[key], tensors[key]) for key in tensors)


def test_directory_round_trips_with_modes_links_and_empty_directories(tmp_path: Path) -> None:
    folder, received = tmp_path / "model", tmp_path / "received"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "empty").mkdir()
    received.mkdir()
    files = {"a": b"", "deep/b": b"b" * 513, "deep/er/ü": bytes(range(256)) * 100}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "a").chmod(0o640)
    (folder / "link").symlink_to(folder / "deep" / "b")
    got = there(received, folder, "model-1.5")
    assert got == received / "model-1.5"
    assert {name: (got / name).read_bytes() for name in files} == files
    assert (got / "link").read_bytes() == files["deep/b"] and not (got / "link").is_symlink()
    assert (got / "empty").is_dir()
    assert (got / "a").stat().st_mode & 0o777 == 0o640
    with tarfile.open(received / "model-1.5.tar") as archive:
        assert {*files, "link", "deep", "deep/er", "empty"} == set(archive.getnames()), "tar reads it as well"


def test_new_directory_replaces_previous_one_completely(tmp_path: Path) -> None:
    folder, received = tmp_path / "model", tmp_path / "received"
    folder.mkdir()
    received.mkdir()
    (folder / "old").write_bytes(b"old")
    first = there(received, folder, "m")
    written = (first / "old").stat().st_ino
    assert receive("m", received, timeout=0).joinpath("old").stat().st_ino == written, "not unpacked twice"
    (folder / "old").rename(folder / "new")
    again = there(received, folder, "m")
    assert again == first
    assert [path.name for path in again.iterdir() if not path.name.startswith(".blast-")] == ["new"]
    assert sorted(path.name for path in received.iterdir()) == ["m", "m.tar"], "nothing is left of the old one"


def test_change_of_file_during_send_raises_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"first")
    with pytest.raises(SourceChangedError, match="changed"), opened(tmp_path):
        (tmp_path / "a").write_bytes(b"second one")


def array_with(**fields: Any) -> np.ndarray[Any, Any]:
    return np.array([None], dtype=object) if not fields else np.ma.masked_array([1], mask=[True])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("text", "Path, or bytes"),
        (5, "cannot send a int"),
        (array_with(), "or pickle it"),
        (np.float64(3), "is a scalar: send numpy.asarray"),
        (array_with(masked=1), "masked"),
        ({"a": 5}, "'a' is a int"),
        ({1: np.zeros(1)}, "must be a str"),
        ({"a": np.array([None])}, "does not support the array"),
    ],
)
def test_unsupported_object_is_rejected_with_reason(data: Any, sentence: str) -> None:
    with pytest.raises(InvalidArgumentError, match=sentence), opened(data):
        pass


def test_missing_path_or_symlink_loop_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(WrongInputError, match="cannot read"), opened(tmp_path / "none"):
        pass
    (tmp_path / "loop").symlink_to(tmp_path)
    with pytest.raises(InvalidArgumentError, match="neither a file nor a directory"), opened(tmp_path):
        pass


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, "do not match the file or its shape"),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}, "do not match the file or its shape"),
        ({"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, "an invalid shape or offset"),
        ({"a": {"dtype": "F32", "shape": [1] * 65, "data_offsets": [0, 4]}}, "65 dimensions, more than 64"),
        ({"a": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}}, "an invalid shape or offset"),
        ({"a": {"dtype": "X9", "shape": [1], "data_offsets": [0, 4]}}, "'X9'"),
        ({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, "NumPy has no bfloat16"),
        ({"a": 5}, "no readable tensors"),
        ([], "not an object of tensors"),
    ],
)
def test_invalid_tensor_header_is_rejected(tmp_path: Path, header: Any, sentence: str) -> None:
    text = json.dumps(header).encode()
    put(tmp_path, "it.safetensors", struct.pack("<Q", len(text)) + text + bytes(8))
    with pytest.raises(UnreadableObjectError, match=sentence):
        receive("it", tmp_path, timeout=0, library="numpy")


@pytest.mark.parametrize("suffix", [".npy", ".safetensors", ".tar"])
@settings(deadline=None, max_examples=200)
@given(st.data())
def test_corrupt_object_is_read_or_rejected(suffix: str, data: st.DataObject) -> None:
    content = bytearray(_wellformed(suffix))
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    with scratch() as folder:
        put(folder, f"it{suffix}", bytes(content))
        try:
            receive("it", folder, timeout=0, library="numpy")
        except UnreadableObjectError as error:
            assert str(folder) in str(error)
        assert {path.name for path in folder.iterdir()} <= {"it", f"it{suffix}"}


def _wellformed(suffix: str) -> bytes:
    if suffix == ".npy":
        return file_of(np.arange(6.0).reshape(2, 3))[0]
    if suffix == ".safetensors":
        return file_of({"a": np.arange(6.0), "b": np.zeros((2, 2), "u1")})[0]
    return archive(("d", tarfile.DIRTYPE, ""), ("d/f", tarfile.REGTYPE, ""))


def archive(*members: tuple[str, bytes, str]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            info.size = 4 if kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(b"data"))
    return file.getvalue()


@pytest.mark.parametrize(
    "members",
    [
        [("../out", tarfile.REGTYPE, "")],
        [("d", tarfile.SYMTYPE, ".."), ("d/out", tarfile.REGTYPE, "")],
        [("out", tarfile.LNKTYPE, "../secret")],
        [("out", tarfile.CHRTYPE, "")],
        [("out", tarfile.REGTYPE, ""), ("out", tarfile.REGTYPE, "")],
        [(".blast-archive", tarfile.REGTYPE, "")],
    ],
)
def test_archive_cannot_write_outside_its_directory(tmp_path: Path, members: list[Any]) -> None:
    received = tmp_path / "received"
    received.mkdir()
    put(received, "it.tar", archive(*members))
    with pytest.raises(UnreadableObjectError):
        receive("it", received, timeout=0)
    assert [path.name for path in tmp_path.rglob("*")] == ["received", "it.tar"]


@pytest.mark.parametrize("cut", [512, 1536, 2000])
def test_truncated_or_corrupt_archive_is_rejected(tmp_path: Path, cut: int) -> None:
    whole = archive(("a", tarfile.REGTYPE, ""), ("b", tarfile.REGTYPE, ""))
    for number, content in enumerate((whole[:cut], whole[:1024] + b"x" * 512 + whole[1536:])):
        put(tmp_path, f"it{number}.tar", content)
        with pytest.raises(UnreadableObjectError):
            receive(f"it{number}", tmp_path, timeout=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["it0.tar", "it1.tar"]


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_received_directory_does_not_replace_other_paths(tmp_path: Path, kind: str) -> None:
    received, own = tmp_path / "received", tmp_path / "received" / "it"
    received.mkdir()
    if kind == "folder":
        own.mkdir()
        (own / "precious").write_bytes(b"x")
    elif kind == "file":
        own.write_bytes(b"x")
        os.utime(own, ns=(0, 0))
    else:
        own.symlink_to("nowhere")
    put(received, "it.tar", archive(("a", tarfile.REGTYPE, "")))
    with pytest.raises(UnreadableObjectError, match="exists and was not received"):
        receive("it", received, timeout=0)
    assert own.is_symlink() if kind == "link" else own.exists()
    assert kind != "folder" or (own / "precious").exists()
    assert len(list(received.iterdir())) == 2


def test_received_directory_can_be_sent_again(tmp_path: Path) -> None:
    folder, first, second = tmp_path / "m", tmp_path / "first", tmp_path / "second"
    for path in (folder, first, second):
        path.mkdir()
    (folder / "a").write_bytes(b"a")
    (folder / "a").chmod(0o000)
    got = there(second, there(first, folder, "m"), "m")
    assert (got / "a").read_bytes() == b"a"
    assert (got / "a").stat().st_mode & 0o777 == 0o600, "readable by its receiver"


def test_npz_content_is_rejected_as_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "several.npz", a=np.zeros(1))
    put(tmp_path, "it.npy", (tmp_path / "several.npz").read_bytes())
    with pytest.raises(UnreadableObjectError, match=r"has no \.npy header"):
        receive("it", tmp_path, timeout=0)


def test_unreadable_object_error_can_be_pickled(tmp_path: Path) -> None:
    put(tmp_path, "it.npy", b"nothing")
    with pytest.raises(UnreadableObjectError) as raised:
        receive("it", tmp_path, timeout=0)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (type(again), str(again), again.path) == (UnreadableObjectError, str(raised.value), raised.value.path)
